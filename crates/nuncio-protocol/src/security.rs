//! How callers authenticate, as an agent card declares it. Spec: §4.5

use std::collections::BTreeMap;

use crate::wire::{wire_message, wire_oneof};

wire_message! {
    /// The scopes asked of one scheme.
    pub struct StringList {
        /// The scopes.
        list: Vec<String> => list "list",
    }
}

wire_message! {
    /// Schemes that must all be met; a list of requirements is met by any one. Spec: §4.5.1
    pub struct SecurityRequirement {
        /// Scheme name to scopes; empty means that anonymous calls are taken.
        schemes: BTreeMap<String, StringList> => list "schemes",
    }
}

wire_oneof! {
    /// One way to authenticate. Spec: §4.5.2
    pub enum SecurityScheme {
        /// A key in a header, query or cookie.
        ApiKey(ApiKeySecurityScheme) => "apiKeySecurityScheme" | "api_key_security_scheme",
        /// HTTP authentication.
        HttpAuth(HttpAuthSecurityScheme) => "httpAuthSecurityScheme" | "http_auth_security_scheme",
        /// OAuth 2.
        OAuth2(OAuth2SecurityScheme) => "oauth2SecurityScheme" | "oauth2_security_scheme",
        /// OpenID Connect.
        OpenIdConnect(OpenIdConnectSecurityScheme)
            => "openIdConnectSecurityScheme" | "open_id_connect_security_scheme",
        /// A client certificate.
        MutualTls(MutualTlsSecurityScheme) => "mtlsSecurityScheme" | "mtls_security_scheme",
    }
}

wire_message! {
    /// A key sent along with each request. Spec: §4.5.3
    pub struct ApiKeySecurityScheme {
        /// For people.
        description: Option<String> => text "description",
        /// `header`, `query` or `cookie`.
        location: String => required "location",
        /// The name of the header, query parameter or cookie.
        name: String => required "name",
    }
}

wire_message! {
    /// HTTP authentication by an `Authorization` header. Spec: §4.5.4
    pub struct HttpAuthSecurityScheme {
        /// For people.
        description: Option<String> => text "description",
        /// `Bearer`, `Basic` or another registered scheme.
        scheme: String => required "scheme",
        /// A hint on the token's form.
        bearer_format: Option<String> => text "bearerFormat",
    }
}

wire_message! {
    /// OAuth 2. Spec: §4.5.5
    pub struct OAuth2SecurityScheme {
        /// For people.
        description: Option<String> => text "description",
        /// How to get a token.
        flows: Option<OAuthFlows> => optional "flows",
        /// The authorisation server's metadata.
        oauth2_metadata_url: Option<String> => text "oauth2MetadataUrl",
    }
}

wire_message! {
    /// OpenID Connect. Spec: §4.5.6
    pub struct OpenIdConnectSecurityScheme {
        /// For people.
        description: Option<String> => text "description",
        /// The discovery document.
        open_id_connect_url: String => required "openIdConnectUrl",
    }
}

wire_message! {
    /// A client certificate. Spec: §4.5.7
    pub struct MutualTlsSecurityScheme {
        /// For people.
        description: Option<String> => text "description",
    }
}

wire_oneof! {
    /// The one flow of an OAuth 2 scheme. Spec: §4.5.8
    pub enum OAuthFlows {
        /// Authorisation code.
        AuthorizationCode(AuthorizationCodeOAuthFlow) => "authorizationCode" | "authorization_code",
        /// Client credentials.
        ClientCredentials(ClientCredentialsOAuthFlow) => "clientCredentials" | "client_credentials",
        /// Implicit, deprecated.
        Implicit(ImplicitOAuthFlow) => "implicit",
        /// Password, deprecated.
        Password(PasswordOAuthFlow) => "password",
        /// Device code.
        DeviceCode(DeviceCodeOAuthFlow) => "deviceCode" | "device_code",
    }
}

wire_message! {
    /// Authorisation code flow.
    pub struct AuthorizationCodeOAuthFlow {
        /// Where the user consents.
        authorization_url: String => required "authorizationUrl",
        /// Where tokens are issued.
        token_url: String => required "tokenUrl",
        /// Where tokens are refreshed.
        refresh_url: Option<String> => text "refreshUrl",
        /// Scope to description.
        scopes: BTreeMap<String, String> => required "scopes",
        /// Whether PKCE must be used.
        pkce_required: bool => flag "pkceRequired",
    }
}

wire_message! {
    /// Client credentials flow.
    pub struct ClientCredentialsOAuthFlow {
        /// Where tokens are issued.
        token_url: String => required "tokenUrl",
        /// Where tokens are refreshed.
        refresh_url: Option<String> => text "refreshUrl",
        /// Scope to description.
        scopes: BTreeMap<String, String> => required "scopes",
    }
}

wire_message! {
    /// Implicit flow, deprecated.
    pub struct ImplicitOAuthFlow {
        /// Where the user consents.
        authorization_url: Option<String> => text "authorizationUrl",
        /// Where tokens are refreshed.
        refresh_url: Option<String> => text "refreshUrl",
        /// Scope to description.
        scopes: BTreeMap<String, String> => list "scopes",
    }
}

wire_message! {
    /// Password flow, deprecated.
    pub struct PasswordOAuthFlow {
        /// Where tokens are issued.
        token_url: Option<String> => text "tokenUrl",
        /// Where tokens are refreshed.
        refresh_url: Option<String> => text "refreshUrl",
        /// Scope to description.
        scopes: BTreeMap<String, String> => list "scopes",
    }
}

wire_message! {
    /// Device code flow. Spec: §4.5.9
    pub struct DeviceCodeOAuthFlow {
        /// Where a device code is had.
        device_authorization_url: String => required "deviceAuthorizationUrl",
        /// Where tokens are issued.
        token_url: String => required "tokenUrl",
        /// Where tokens are refreshed.
        refresh_url: Option<String> => text "refreshUrl",
        /// Scope to description.
        scopes: BTreeMap<String, String> => required "scopes",
    }
}
