//! The agent card of 0.3. Its addresses follow the rules of [`crate::v0_3::card`], which knows the
//! same card in JSON; everything else is a matter of fields.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::pb;
use super::pb::o_auth_flows::Flow;
use super::pb::security_scheme::Scheme;
use crate::grpc::convert::{Proto, message, oneof, within};
use crate::json::DecodeError;
use crate::{
    AgentCapabilities, AgentCard, AgentExtension, AgentInterface, AgentProvider, AgentSkill,
    ApiKeySecurityScheme, AuthorizationCodeOAuthFlow, ClientCredentialsOAuthFlow,
    HttpAuthSecurityScheme, ImplicitOAuthFlow, MutualTlsSecurityScheme, OAuth2SecurityScheme,
    OAuthFlows, OpenIdConnectSecurityScheme, PasswordOAuthFlow, SecurityRequirement,
    SecurityScheme, SecuritySchemes, StringList,
};

impl Proto<pb::AgentCard> for AgentCard {
    fn to_proto(&self) -> pb::AgentCard {
        let addresses = Addresses::of(&self.supported_interfaces);
        pb::AgentCard {
            name: self.name.clone(),
            description: self.description.clone(),
            url: addresses.url,
            provider: self.provider.to_proto(),
            version: self.version.clone(),
            documentation_url: self.documentation_url.clone().unwrap_or_default(),
            capabilities: Some(self.capabilities.to_proto()),
            security_schemes: self.security_schemes.to_proto(),
            security: self.security_requirements.to_proto(),
            default_input_modes: self.default_input_modes.clone(),
            default_output_modes: self.default_output_modes.clone(),
            skills: self.skills.to_proto(),
            supports_authenticated_extended_card: self.capabilities.extended_agent_card
                == Some(true),
            preferred_transport: addresses.transport,
            additional_interfaces: addresses.all,
            protocol_version: addresses.protocol_version,
            // They hold for the other form only.
            signatures: Vec::new(),
            icon_url: self.icon_url.clone().unwrap_or_default(),
        }
    }

    fn from_proto(proto: pb::AgentCard) -> Result<Self, DecodeError> {
        let addresses = Addresses {
            url: proto.url,
            transport: proto.preferred_transport,
            all: proto.additional_interfaces,
            protocol_version: proto.protocol_version,
        };
        let mut capabilities =
            AgentCapabilities::from_proto(proto.capabilities.unwrap_or_default())
                .map_err(|error| within("capabilities", error))?;
        capabilities.extended_agent_card = flag(proto.supports_authenticated_extended_card);
        Ok(Self {
            name: proto.name,
            description: proto.description,
            supported_interfaces: addresses.interfaces()?,
            provider: Proto::from_proto(proto.provider)?,
            version: proto.version,
            documentation_url: Proto::from_proto(proto.documentation_url)?,
            capabilities,
            security_schemes: Proto::from_proto(proto.security_schemes)?,
            security_requirements: Proto::from_proto(proto.security)?,
            default_input_modes: proto.default_input_modes,
            default_output_modes: proto.default_output_modes,
            skills: Proto::from_proto(proto.skills)?,
            signatures: Vec::new(),
            icon_url: Proto::from_proto(proto.icon_url)?,
        })
    }
}

/// A flag that is not set is absent: this version cannot tell.
fn flag(set: bool) -> Option<bool> {
    set.then_some(true)
}

/// Where the agent is reached, in the four fields that 0.3 has for it.
struct Addresses {
    url: String,
    transport: String,
    all: Vec<pb::AgentInterface>,
    protocol_version: String,
}

impl Addresses {
    fn of(interfaces: &[AgentInterface]) -> Self {
        let bare = AgentCard {
            supported_interfaces: interfaces.to_vec(),
            ..AgentCard::default()
        };
        let json = crate::v0_3::card::encode(&bare);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let all = json["additionalInterfaces"]
            .as_array()
            .into_iter()
            .flatten();
        Self {
            url: text(&json["url"]),
            transport: text(&json["preferredTransport"]),
            all: all
                .map(|entry| pb::AgentInterface {
                    url: text(&entry["url"]),
                    transport: text(&entry["transport"]),
                })
                .collect(),
            protocol_version: text(&json["protocolVersion"]),
        }
    }

    fn interfaces(&self) -> Result<Vec<AgentInterface>, DecodeError> {
        let all = self.all.iter();
        let all = all.map(|entry| json!({"url": entry.url, "transport": entry.transport}));
        let card = json!({
            "url": self.url,
            "preferredTransport": self.transport,
            "additionalInterfaces": all.collect::<Value>(),
            "protocolVersion": self.protocol_version,
        });
        crate::v0_3::card::decode(&card).map(|card| card.supported_interfaces)
    }
}

impl Proto<pb::AgentCapabilities> for AgentCapabilities {
    fn to_proto(&self) -> pb::AgentCapabilities {
        pb::AgentCapabilities {
            streaming: self.streaming == Some(true),
            push_notifications: self.push_notifications == Some(true),
            extensions: self.extensions.to_proto(),
        }
    }

    fn from_proto(proto: pb::AgentCapabilities) -> Result<Self, DecodeError> {
        Ok(Self {
            streaming: flag(proto.streaming),
            push_notifications: flag(proto.push_notifications),
            extensions: Proto::from_proto(proto.extensions)
                .map_err(|error| within("extensions", error))?,
            extended_agent_card: None,
        })
    }
}

message!(AgentProvider = pb::AgentProvider { url, organization });
message!(
    AgentExtension = pb::AgentExtension {
        uri,
        description,
        required,
        params
    }
);
message!(AgentSkill = pb::AgentSkill {
    id = id,
    name = name,
    description = description,
    tags = tags,
    examples = examples,
    input_modes = input_modes,
    output_modes = output_modes,
    security_requirements = security,
});
message!(SecurityRequirement = pb::Security { schemes });
message!(StringList = pb::StringList { list });

impl Proto<BTreeMap<String, pb::SecurityScheme>> for SecuritySchemes {
    fn to_proto(&self) -> BTreeMap<String, pb::SecurityScheme> {
        self.0.to_proto()
    }

    /// Entries of unknown kind are skipped, as in JSON (CARD-09).
    fn from_proto(proto: BTreeMap<String, pb::SecurityScheme>) -> Result<Self, DecodeError> {
        let known = proto
            .into_iter()
            .filter_map(|(name, scheme)| Some((name, SecurityScheme::from_proto(scheme).ok()?)));
        Ok(Self(known.collect()))
    }
}

oneof!(SecurityScheme = pb::SecurityScheme.scheme: Scheme {
    ApiKey = ApiKeySecurityScheme "apiKeySecurityScheme",
    HttpAuth = HttpAuthSecurityScheme "httpAuthSecurityScheme",
    OAuth2 = Oauth2SecurityScheme "oauth2SecurityScheme",
    OpenIdConnect = OpenIdConnectSecurityScheme "openIdConnectSecurityScheme",
    MutualTls = MtlsSecurityScheme "mtlsSecurityScheme",
});
message!(
    ApiKeySecurityScheme = pb::ApiKeySecurityScheme {
        description,
        location,
        name
    }
);
message!(
    HttpAuthSecurityScheme = pb::HttpAuthSecurityScheme {
        description,
        scheme,
        bearer_format,
    }
);
message!(
    OpenIdConnectSecurityScheme = pb::OpenIdConnectSecurityScheme {
        description,
        open_id_connect_url,
    }
);
message!(MutualTlsSecurityScheme = pb::MutualTlsSecurityScheme { description });

impl Proto<pb::OAuth2SecurityScheme> for OAuth2SecurityScheme {
    fn to_proto(&self) -> pb::OAuth2SecurityScheme {
        pb::OAuth2SecurityScheme {
            description: self.description.to_proto(),
            flows: self.flows.as_ref().map(write_flows),
            oauth2_metadata_url: self.oauth2_metadata_url.to_proto(),
        }
    }

    /// Flows without any stand for one that this version has not.
    fn from_proto(proto: pb::OAuth2SecurityScheme) -> Result<Self, DecodeError> {
        let flow = proto.flows.and_then(|flows| flows.flow);
        Ok(Self {
            description: Proto::from_proto(proto.description)?,
            flows: flow.map(read_flow).transpose()?,
            oauth2_metadata_url: Proto::from_proto(proto.oauth2_metadata_url)?,
        })
    }
}

/// The device code flow has no form here, nor has `pkceRequired`.
fn write_flows(flows: &OAuthFlows) -> pb::OAuthFlows {
    let flow = match flows {
        OAuthFlows::AuthorizationCode(flow) => Some(Flow::AuthorizationCode(flow.to_proto())),
        OAuthFlows::ClientCredentials(flow) => Some(Flow::ClientCredentials(flow.to_proto())),
        OAuthFlows::Implicit(flow) => Some(Flow::Implicit(flow.to_proto())),
        OAuthFlows::Password(flow) => Some(Flow::Password(flow.to_proto())),
        OAuthFlows::DeviceCode(_) => None,
    };
    pb::OAuthFlows { flow }
}

fn read_flow(flow: Flow) -> Result<OAuthFlows, DecodeError> {
    Ok(match flow {
        Flow::AuthorizationCode(flow) => OAuthFlows::AuthorizationCode(Proto::from_proto(flow)?),
        Flow::ClientCredentials(flow) => OAuthFlows::ClientCredentials(Proto::from_proto(flow)?),
        Flow::Implicit(flow) => OAuthFlows::Implicit(Proto::from_proto(flow)?),
        Flow::Password(flow) => OAuthFlows::Password(Proto::from_proto(flow)?),
    })
}

message!(
    AuthorizationCodeOAuthFlow = pb::AuthorizationCodeOAuthFlow {
        authorization_url,
        token_url,
        refresh_url,
        scopes,
    }
);
message!(
    ClientCredentialsOAuthFlow = pb::ClientCredentialsOAuthFlow {
        token_url,
        refresh_url,
        scopes,
    }
);
message!(
    ImplicitOAuthFlow = pb::ImplicitOAuthFlow {
        authorization_url,
        refresh_url,
        scopes
    }
);
message!(
    PasswordOAuthFlow = pb::PasswordOAuthFlow {
        token_url,
        refresh_url,
        scopes
    }
);
