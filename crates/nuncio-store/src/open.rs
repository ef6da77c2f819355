//! From a line of configuration to a store.

use std::sync::Arc;

use crate::{MemoryStore, SqliteOptions, SqliteStore, Store, StoreError};

/// Opens the store that `url` names: `sqlite:PATH`, a plain path, or `memory:`.
///
/// # Errors
/// [`StoreError::Refused`] for another scheme, else as [`SqliteStore::open`].
pub fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(MemoryStore::default())),
        Some(("sqlite", path)) => sqlite(path.strip_prefix("//").unwrap_or(path)),
        Some((scheme, _)) if is_scheme(scheme) => Err(StoreError::Refused(format!(
            "no store for \"{scheme}:\": sqlite:PATH and memory: are known"
        ))),
        _ => sqlite(url),
    }
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
