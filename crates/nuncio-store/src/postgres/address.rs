//! Where the database is: a URL, which may hold a password.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr as _;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use super::options::PostgresOptions;
use super::tls::Trust;
use crate::StoreError;

/// How a URL of PostgreSQL begins.
pub(crate) const SCHEMES: [&str; 2] = ["postgres", "postgresql"];

/// An idle connection is asked for a sign of life after this time.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_RETRIES: u32 = 3;

/// Where to connect, and whom to believe that it is the right place.
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) trust: Trust,
}

/// Shows nothing of the URL.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Address").finish_non_exhaustive()
    }
}

impl Address {
    /// Reads a URL. Beyond what the driver knows there are `sslmode=verify-ca` and `verify-full`,
    /// which are one, and `sslrootcert`.
    ///
    /// # Errors
    /// [`StoreError::Refused`], which tells nothing of a URL that cannot be taken apart: what looks
    /// like a host may be a part of a password.
    pub(super) fn parse(url: &str, options: &PostgresOptions) -> Result<Self, StoreError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut rest = Vec::new();
        let (mut mode, mut roots) = (None, None);
        for piece in query.split('&').filter(|piece| !piece.is_empty()) {
            match form_urlencoded::parse(piece.as_bytes()).next() {
                Some((name, value)) if name == "sslmode" => mode = Some(value.into_owned()),
                Some((name, value)) if name == "sslrootcert" => {
                    roots = Some(PathBuf::from(value.into_owned()));
                }
                _ => rest.push(piece),
            }
        }
        let plain = match rest.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", rest.join("&")),
        };
        let mut config = Config::from_str(&plain).map_err(|_| unreadable())?;
        if config.get_hosts().is_empty() {
            return Err(StoreError::Refused(
                "store.url names no host of a database".to_owned(),
            ));
        }
        let (ssl_mode, verify) = ssl_mode(mode.as_deref())?;
        config.ssl_mode(ssl_mode);
        if config.get_application_name().is_none() {
            config.application_name("nuncio");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(options.connect_timeout);
        }
        config
            .keepalives(true)
            .keepalives_idle(KEEPALIVE_IDLE)
            .keepalives_interval(KEEPALIVE_INTERVAL)
            .keepalives_retries(KEEPALIVE_RETRIES)
            .tcp_user_timeout(patience(options));
        let trust = match (verify, roots) {
            (false, _) => Trust::Anybody,
            (true, None) => Trust::System,
            (true, Some(path)) => Trust::File(path),
        };
        Ok(Self { config, trust })
    }
}

/// How long a call waits for a database that gives no sign.
pub(super) fn patience(options: &PostgresOptions) -> Duration {
    options.statement_timeout + options.statement_timeout / 2
}

fn unreadable() -> StoreError {
    StoreError::Refused(
        "store.url is no URL of PostgreSQL, such as postgres://USER:PASSWORD@HOST/DATABASE with \
         special characters percent-encoded"
            .to_owned(),
    )
}

/// What is asked of the connection, and whether the certificate is looked at.
fn ssl_mode(mode: Option<&str>) -> Result<(SslMode, bool), StoreError> {
    Ok(match mode {
        Some("disable") => (SslMode::Disable, false),
        None | Some("prefer") => (SslMode::Prefer, false),
        Some("require") => (SslMode::Require, false),
        Some("verify-ca" | "verify-full") => (SslMode::Require, true),
        Some(_) => {
            return Err(StoreError::Refused(
                "store.url: sslmode is disable, prefer, require, verify-ca or verify-full"
                    .to_owned(),
            ));
        }
    })
}

/// A URL as it may be shown: without user, password and parameters.
///
/// Whatever stands before the last `@` may be a part of the password.
pub(crate) fn without_secrets(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let rest = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let place = rest.split_once('?').map_or(rest, |(place, _)| place);
    format!("{scheme}://{place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_shown_has_no_password() {
        for (url, shown) in [
            ("postgres://ada:s3cret@db/nuncio", "postgres://db/nuncio"),
            ("postgres://ada:s3@cr/et@db/nuncio", "postgres://db/nuncio"),
            (
                "postgres://db/nuncio?password=s3cret",
                "postgres://db/nuncio",
            ),
            (
                "postgres://u@/d?host=/run&password=s3@cret",
                "postgres://cret",
            ),
            ("sqlite:data/n.db", "sqlite:data/n.db"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }

    #[test]
    fn modes_are_those_of_libpq() {
        let trust = |url: &str| Address::parse(url, &PostgresOptions::default());
        let verified = trust("postgres://h/d?sslmode=verify-full&sslrootcert=/ca%20x.pem");
        let verified = verified.unwrap();
        assert!(matches!(&verified.trust, Trust::File(path) if path.ends_with("ca x.pem")));
        assert_eq!(verified.config.get_ssl_mode(), SslMode::Require);
        let default = trust("postgres://h/d?application_name=x").unwrap();
        assert_eq!(default.config.get_ssl_mode(), SslMode::Prefer);
        assert_eq!(default.config.get_application_name(), Some("x"));
        for refused in [
            "postgres://h/d?sslmode=s3cret",
            "postgres://u:s3cret@h:x/d",
            "postgres:",
        ] {
            let error = trust(refused).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
    }
}
