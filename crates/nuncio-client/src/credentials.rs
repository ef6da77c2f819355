//! Secrets, each for one origin only.

use std::collections::HashMap;
use std::fmt;

use base64::Engine as _;
use http::{HeaderName, HeaderValue, header};
use nuncio_protocol::{A2aError, ErrorKind};
use url::{Origin, Url};

/// How a client proves who it is. Never shown, not even by `Debug`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials {
    /// A token in the `Authorization` header: OAuth 2, OpenID Connect and the like.
    Bearer(String),
    /// A key in a header of its own.
    ApiKey {
        /// The header.
        header: String,
        /// The key.
        key: String,
    },
    /// A user name and a password in the `Authorization` header.
    Basic {
        /// The name.
        user: String,
        /// The password.
        password: String,
    },
}

impl Credentials {
    fn header(&self) -> Result<(HeaderName, HeaderValue), A2aError> {
        let bad = || {
            A2aError::new(
                ErrorKind::InvalidRequest,
                "the credentials contain a character that no HTTP header can carry",
            )
        };
        let (name, text) = match self {
            Self::Bearer(token) => (header::AUTHORIZATION, format!("Bearer {token}")),
            Self::ApiKey { header, key } => (
                HeaderName::try_from(header.as_str()).map_err(|_| bad())?,
                key.clone(),
            ),
            Self::Basic { user, password } => {
                let pair = format!("{user}:{password}");
                let coded = base64::engine::general_purpose::STANDARD.encode(pair);
                (header::AUTHORIZATION, format!("Basic {coded}"))
            }
        };
        let mut value = HeaderValue::try_from(text).map_err(|_| bad())?;
        value.set_sensitive(true);
        Ok((name, value))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer(…)",
            Self::ApiKey { .. } => "ApiKey(…)",
            Self::Basic { .. } => "Basic(…)",
        })
    }
}

/// The credentials of a client by the origin they are for (AUTH-09).
#[derive(Debug, Clone, Default)]
pub(crate) struct Keyring {
    by_origin: HashMap<Origin, Credentials>,
}

impl Keyring {
    pub(crate) fn put(&mut self, url: &Url, credentials: Credentials) {
        self.by_origin.insert(url.origin(), credentials);
    }

    /// The header for a request to `url`, if there are credentials for its origin.
    pub(crate) fn header(&self, url: &Url) -> Result<Option<(HeaderName, HeaderValue)>, A2aError> {
        self.by_origin
            .get(&url.origin())
            .map(Credentials::header)
            .transpose()
    }

    pub(crate) fn covers(&self, url: &Url) -> bool {
        self.by_origin.contains_key(&url.origin())
    }
}
