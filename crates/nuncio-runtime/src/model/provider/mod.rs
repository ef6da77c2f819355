//! Models of providers, through genai.
//!
//! What genai knows is how each provider spells a request and an answer. The connection is ours,
//! the key comes from who builds the model, and nothing is read from the environment.

mod answer;
mod error;
mod question;

use std::fmt;
use std::time::Duration;

use genai::adapter::AdapterKind;
use genai::resolver::{AuthData, Endpoint, ProviderConfig};
use genai::{Client, ModelIden};

use super::{Model, ModelError, ModelFuture, ModelRequest, ModelStream};
use error::Redact;

/// A model of a provider, such as `gpt-4o` of `openai` or `claude-sonnet-4-5` of `anthropic`.
#[derive(Clone)]
pub struct GenaiModel {
    name: String,
    iden: ModelIden,
    client: Client,
    redact: Redact,
    first_byte: Duration,
    idle: Duration,
}

/// Makes a [`GenaiModel`].
pub struct GenaiModelBuilder {
    provider: String,
    name: String,
    http: reqwest::Client,
    base_url: Option<String>,
    key: Option<String>,
    first_byte: Duration,
    idle: Duration,
}

impl fmt::Debug for GenaiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenaiModel")
            .field("provider", &self.iden.adapter_kind.as_lower_str())
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for GenaiModelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenaiModelBuilder")
            .field("provider", &self.provider)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl GenaiModel {
    /// A model of a provider, called through this HTTP client.
    ///
    /// `provider` is `openai` (which also serves everything compatible with it, given a base URL),
    /// `anthropic`, `gemini`, `ollama`, `groq`, `mistral`, or another that genai names. The client
    /// decides what may be reached; `nuncio_egress::Egress::client_for` gives one.
    pub fn builder(
        provider: impl Into<String>,
        name: impl Into<String>,
        http: reqwest::Client,
    ) -> GenaiModelBuilder {
        GenaiModelBuilder {
            provider: provider.into(),
            name: name.into(),
            http,
            base_url: None,
            key: None,
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(60),
        }
    }

    /// Whether a provider of this name is known.
    pub fn is_provider(name: &str) -> bool {
        AdapterKind::from_lower_str(name).is_some()
    }
}

impl GenaiModelBuilder {
    /// Where the provider is, such as `https://gateway.example/v1`; its usual place if not said.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        let mut url = url.into();
        if !url.ends_with('/') {
            url.push('/');
        }
        self.base_url = Some(url);
        self
    }

    /// The key; none is sent that means anything if not said.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// How long the provider may take until its answer begins; 120 s.
    #[must_use]
    pub fn first_byte_timeout(mut self, timeout: Duration) -> Self {
        self.first_byte = timeout;
        self
    }

    /// How long an answer may pause between two pieces; 60 s.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle = timeout;
        self
    }

    /// The model.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] for a provider that is not known.
    pub fn build(self) -> Result<GenaiModel, ModelError> {
        let kind = AdapterKind::from_lower_str(&self.provider).ok_or_else(|| {
            ModelError::Invalid(format!("there is no provider \"{}\"", self.provider))
        })?;
        let redact = Redact::new(self.key.clone());
        // Without a key genai would look into the environment.
        let auth = AuthData::Key(self.key.unwrap_or_else(|| "none".to_owned()));
        let mut place = ProviderConfig::from_auth(auth);
        if let Some(url) = self.base_url {
            place = place.with_endpoint(Endpoint::from_owned(url));
        }
        let client = Client::builder()
            .with_reqwest(self.http)
            .with_adapter_kind(kind)
            .append_provider_config(kind, place)
            .build()
            .map_err(|error| ModelError::Invalid(redact.text(&error.to_string())))?;
        Ok(GenaiModel {
            iden: ModelIden::new(kind, self.name.clone()),
            name: self.name,
            client,
            redact,
            first_byte: self.first_byte,
            idle: self.idle,
        })
    }
}

impl Model for GenaiModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn generate(&self, request: ModelRequest) -> ModelFuture<'_, ModelStream> {
        Box::pin(async move {
            let mut options = question::options(&request);
            options.stream_header_timeout = Some(self.first_byte);
            options.stream_read_timeout = Some(self.idle);
            let request = question::question(request);
            let answer = self
                .client
                .exec_chat_stream(self.iden.clone(), request, Some(&options))
                .await
                .map_err(|error| self.redact.error(&error))?;
            let stream = answer::chunks(answer.stream, self.name.clone(), self.redact.clone());
            Ok(Box::pin(stream) as ModelStream)
        })
    }
}
