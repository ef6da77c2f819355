//! The agent card: what an agent says about itself. Spec: §4.4

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use crate::wire::wire_message;
use crate::{Metadata, SecurityRequirement, SecurityScheme};

wire_message! {
    /// What an agent is, what it can do and where it is reached. Spec: §4.4.1
    pub struct AgentCard {
        /// A name for people.
        name: String => required "name",
        /// What it is for.
        description: String => required "description",
        /// Where it is reached, best first.
        supported_interfaces: Vec<AgentInterface> => required "supportedInterfaces",
        /// Who runs it.
        provider: Option<AgentProvider> => optional "provider",
        /// The agent's own version, free text.
        version: String => required "version",
        /// Where to read more.
        documentation_url: Option<String> => optional "documentationUrl",
        /// Which optional operations it offers.
        capabilities: AgentCapabilities => required "capabilities",
        /// How callers may authenticate, by name. Kinds this version does not know are left out.
        security_schemes: SecuritySchemes => list "securitySchemes",
        /// Which of the schemes are needed: any one entry.
        security_requirements: Vec<SecurityRequirement> => list "securityRequirements",
        /// Media types it takes unless a skill says otherwise.
        default_input_modes: Vec<String> => required "defaultInputModes",
        /// Media types it gives unless a skill says otherwise.
        default_output_modes: Vec<String> => required "defaultOutputModes",
        /// What it can do.
        skills: Vec<AgentSkill> => required "skills",
        /// Signatures over this card.
        signatures: Vec<AgentCardSignature> => list "signatures",
        /// A picture of it.
        icon_url: Option<String> => optional "iconUrl",
    }
}

wire_message! {
    /// One address of an agent. Spec: §4.4.6
    pub struct AgentInterface {
        /// The address.
        url: String => required "url",
        /// How to talk there; see [`Binding`].
        protocol_binding: String => required "protocolBinding",
        /// Sent along with every request if declared.
        tenant: Option<String> => text "tenant",
        /// `Major.Minor`.
        protocol_version: String => required "protocolVersion",
    }
}

impl AgentInterface {
    /// An interface of version 1.0.
    pub fn new(url: impl Into<String>, binding: Binding) -> Self {
        Self {
            url: url.into(),
            protocol_binding: binding.as_str().to_owned(),
            tenant: None,
            protocol_version: "1.0".to_owned(),
        }
    }

    /// The binding, if it is a known one.
    pub fn binding(&self) -> Option<Binding> {
        Binding::from_name(&self.protocol_binding)
    }
}

/// How an operation travels. Spec: §5
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Binding {
    /// JSON-RPC 2.0 over HTTP. Spec: §9
    JsonRpc,
    /// gRPC. Spec: §10
    Grpc,
    /// HTTP with JSON, "REST". Spec: §11
    HttpJson,
}

impl Binding {
    /// The name in agent cards.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonRpc => "JSONRPC",
            Self::Grpc => "GRPC",
            Self::HttpJson => "HTTP+JSON",
        }
    }

    /// The binding of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::JsonRpc, Self::Grpc, Self::HttpJson]
            .into_iter()
            .find(|binding| binding.as_str().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

wire_message! {
    /// Who runs an agent. Spec: §4.4.2
    pub struct AgentProvider {
        /// Their site.
        url: String => required "url",
        /// Their name.
        organization: String => required "organization",
    }
}

wire_message! {
    /// Which optional operations an agent offers; absent means no. Spec: §4.4.3
    pub struct AgentCapabilities {
        /// Streaming sends and subscriptions.
        streaming: Option<bool> => optional "streaming",
        /// Webhooks.
        push_notifications: Option<bool> => optional "pushNotifications",
        /// Extensions it understands.
        extensions: Vec<AgentExtension> => list "extensions",
        /// A further card for authenticated callers.
        extended_agent_card: Option<bool> => optional "extendedAgentCard",
    }
}

wire_message! {
    /// An extension an agent understands. Spec: §4.4.4
    pub struct AgentExtension {
        /// Its name.
        uri: String => required "uri",
        /// What the agent does with it.
        description: Option<String> => text "description",
        /// Whether clients must support it.
        required: bool => flag "required",
        /// Settings of its own.
        params: Option<Metadata> => optional "params",
    }
}

wire_message! {
    /// One thing an agent can do. Spec: §4.4.5
    pub struct AgentSkill {
        /// Unique within the card.
        id: String => required "id",
        /// A name for people.
        name: String => required "name",
        /// What it does.
        description: String => required "description",
        /// Words to find it by.
        tags: Vec<String> => required "tags",
        /// Sample requests.
        examples: Vec<String> => list "examples",
        /// Media types it takes, if other than the card's.
        input_modes: Vec<String> => list "inputModes",
        /// Media types it gives, if other than the card's.
        output_modes: Vec<String> => list "outputModes",
        /// What it needs beyond the card's requirements.
        security_requirements: Vec<SecurityRequirement> => list "securityRequirements",
    }
}

wire_message! {
    /// A signature over a card (JWS, detached payload). Spec: §8.4
    pub struct AgentCardSignature {
        /// The protected header, base64url.
        protected: String => required "protected",
        /// The signature, base64url.
        signature: String => required "signature",
        /// The unprotected header; never trusted.
        header: Option<Metadata> => optional "header",
    }
}

/// The schemes of a card by name; entries of unknown kind are skipped when reading (CARD-09).
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[serde(transparent)]
pub struct SecuritySchemes(pub BTreeMap<String, SecurityScheme>);

impl SecuritySchemes {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for SecuritySchemes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = BTreeMap::<String, Value>::deserialize(deserializer)?;
        let mut known = BTreeMap::new();
        for (name, value) in entries {
            if !value.is_object() {
                return Err(de::Error::custom(format!(
                    "the scheme `{name}` is not an object"
                )));
            }
            if let Ok(scheme) = SecurityScheme::deserialize(value) {
                known.insert(name, scheme);
            }
        }
        Ok(Self(known))
    }
}
