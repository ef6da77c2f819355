//! What is asked of callers, as cards declare it (AUTH-02): nothing that is not enforced.

use nuncio_protocol::{
    AgentCard, ApiKeySecurityScheme, HttpAuthSecurityScheme, MutualTlsSecurityScheme,
    OAuth2SecurityScheme, OAuthFlows, OpenIdConnectSecurityScheme, SecurityRequirement,
    SecurityScheme, SecuritySchemes, StringList,
};

use super::{Authenticator, KeyPlace};

/// Where callers get the tokens that are taken.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TokenSource {
    /// By hand; the card says that it is a bearer token and no more.
    Unspecified,
    /// From an OpenID Connect provider with this discovery document.
    OpenIdConnect(String),
    /// From an OAuth 2 server by this flow.
    OAuth2 {
        /// The flow.
        flow: Box<OAuthFlows>,
        /// The server's metadata (RFC 8414).
        metadata_url: Option<String>,
    },
}

impl Authenticator {
    /// Writes into a card what is really asked of callers.
    pub(crate) fn declare(&self, card: &mut AgentCard) {
        card.security_schemes = SecuritySchemes::default();
        card.security_requirements.clear();
        for (name, scheme, scopes) in self.schemes() {
            let mut requirement = SecurityRequirement::default();
            let mut list = StringList::default();
            list.list = scopes;
            requirement.schemes.insert(name.clone(), list);
            card.security_requirements.push(requirement);
            card.security_schemes.0.insert(name, scheme);
        }
        if self.allows_anonymous() && !card.security_requirements.is_empty() {
            let nothing = SecurityRequirement::default();
            card.security_requirements.push(nothing);
        }
    }

    /// Every way in, any one of which will do.
    fn schemes(&self) -> Vec<(String, SecurityScheme, Vec<String>)> {
        let mut schemes = Vec::new();
        let mut add = |name: &str, scheme, scopes: &[String]| {
            schemes.push((name.to_owned(), scheme, scopes.to_vec()));
        };
        if !self.keys.is_empty() {
            for (n, place) in self.places.iter().enumerate() {
                let name = match n {
                    0 => "apiKey".to_owned(),
                    n => format!("apiKey{}", n + 1),
                };
                add(&name, SecurityScheme::ApiKey(place.scheme()), &[]);
            }
            add("bearer", http("Bearer", None), &[]);
            if self.basic {
                add("basic", http("Basic", None), &[]);
            }
        }
        if let Some((rules, source)) = &self.tokens {
            match source {
                TokenSource::Unspecified => {
                    add("token", http("Bearer", Some("JWT")), rules.scopes());
                }
                TokenSource::OpenIdConnect(url) => {
                    let mut scheme = OpenIdConnectSecurityScheme::default();
                    scheme.open_id_connect_url.clone_from(url);
                    add(
                        "openIdConnect",
                        SecurityScheme::OpenIdConnect(scheme),
                        rules.scopes(),
                    );
                }
                TokenSource::OAuth2 { flow, metadata_url } => {
                    let mut scheme = OAuth2SecurityScheme::default();
                    scheme.flows = Some((**flow).clone());
                    scheme.oauth2_metadata_url.clone_from(metadata_url);
                    add("oauth2", SecurityScheme::OAuth2(scheme), rules.scopes());
                }
            }
        }
        if !self.certificates.is_empty() {
            let scheme = MutualTlsSecurityScheme::default();
            add("mutualTls", SecurityScheme::MutualTls(scheme), &[]);
        }
        schemes
    }
}

impl KeyPlace {
    fn scheme(&self) -> ApiKeySecurityScheme {
        let (location, name) = match self {
            Self::Header(name) => ("header", canonical(name)),
            Self::Query(name) => ("query", name.clone()),
            Self::Cookie(name) => ("cookie", name.clone()),
        };
        let mut scheme = ApiKeySecurityScheme::default();
        scheme.location = location.to_owned();
        scheme.name = name;
        scheme
    }
}

/// `x-api-key` as people write it: `X-API-Key`.
fn canonical(name: &http::HeaderName) -> String {
    let words = name.as_str().split('-').map(|word| match word {
        "api" | "id" | "a2a" => word.to_ascii_uppercase(),
        word => {
            let (first, rest) = word.split_at(word.len().min(1));
            first.to_ascii_uppercase() + rest
        }
    });
    words.collect::<Vec<_>>().join("-")
}

fn http(scheme: &str, format: Option<&str>) -> SecurityScheme {
    let mut http = HttpAuthSecurityScheme::default();
    http.scheme = scheme.to_owned();
    http.bearer_format = format.map(str::to_owned);
    SecurityScheme::HttpAuth(http)
}
