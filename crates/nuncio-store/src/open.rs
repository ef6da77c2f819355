//! From a line of configuration to a store.

use std::sync::Arc;

use crate::parts::LargeParts;
use crate::postgres::{SCHEMES, without_secrets};
use crate::{
    MemoryStore, PartsOptions, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store,
    StoreError,
};

/// How to open a store, beside where it is.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Where processes that share the store tell each other of their commits, if not in the store
    /// itself: as [`PostgresOptions::wake_ups`].
    pub wake_ups: Option<String>,
    /// Where large parts are kept.
    pub parts: PartsOptions,
}

/// Opens the store that `url` names: `sqlite:PATH`, a plain path, `postgres://…`, or `memory:`.
///
/// # Errors
/// [`StoreError::Refused`] for another scheme, else as [`SqliteStore::open`] and
/// [`PostgresStore::open`]. None of them shows what [`shown_url`] leaves out.
pub async fn open(url: &str, options: OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    let beside = || sqlite_path(url).map(|path| format!("file:{path}.parts"));
    let parts = options.parts.clone();
    let store = open_itself(url, options).await?;
    Ok(match parts.place.clone().or_else(beside) {
        Some(place) => Arc::new(LargeParts::around(store, &place, &parts)?),
        None => store,
    })
}

/// The path of the file, if the URL is of SQLite.
fn sqlite_path(url: &str) -> Option<&str> {
    match url.split_once(':') {
        Some(("sqlite", path)) => Some(path.strip_prefix("//").unwrap_or(path)),
        Some((scheme, _)) if is_scheme(scheme) => None,
        _ => Some(url),
    }
}

async fn open_itself(url: &str, options: OpenOptions) -> Result<Arc<dyn Store>, StoreError> {
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(MemoryStore::default())),
        Some((scheme, _)) if SCHEMES.contains(&scheme) => {
            let options = PostgresOptions {
                wake_ups: options.wake_ups,
                ..PostgresOptions::default()
            };
            Ok(Arc::new(PostgresStore::open(url, options).await?))
        }
        Some((scheme, _)) if is_scheme(scheme) && scheme != "sqlite" => Err(StoreError::Refused(
            format!("no store for \"{scheme}:\": sqlite:PATH, postgres://… and memory: are known"),
        )),
        _ => sqlite(sqlite_path(url).unwrap_or_default()),
    }
}

/// The URL of a store as it may be shown and logged: without user, password and parameters.
pub fn shown_url(url: &str) -> String {
    without_secrets(url)
}

/// Whether several processes may have the store that `url` names open at a time.
pub fn is_shared(url: &str) -> bool {
    SCHEMES.iter().any(|scheme| {
        url.strip_prefix(scheme)
            .is_some_and(|rest| rest.starts_with("://"))
    })
}

fn sqlite(path: &str) -> Result<Arc<dyn Store>, StoreError> {
    if path.is_empty() {
        return Err(StoreError::Refused(
            "a store needs a path, such as sqlite:data/nuncio.db".to_owned(),
        ));
    }
    let store = SqliteStore::open(path, SqliteOptions::default())?;
    Ok(Arc::new(store))
}

/// One letter is the drive of a path.
fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}
