//! Cards that have been found before, as long as their servers allow (CACHE-04).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Discovered;

/// How long a card without cache headers is taken as it is.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
/// No card is taken without a question for longer than this.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3600);
const MAX_ENTRIES: usize = 256;

/// A small cache of discovered cards, shared by its clones.
///
/// Follows `Cache-Control` and `ETag`; a card without either is fresh for five minutes. Cards that
/// were only given against credentials are not kept.
#[derive(Debug, Clone, Default)]
pub struct CardCache {
    entries: Arc<Mutex<HashMap<String, Entry>>>,
}

#[derive(Debug, Clone)]
struct Entry {
    found: Discovered,
    etag: Option<String>,
    fresh_until: Instant,
}

/// What the cache knows about an address.
pub(super) enum Cached {
    Fresh(Discovered),
    Stale {
        found: Discovered,
        etag: Option<String>,
    },
}

impl CardCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets what was found for an address, so that the next discovery asks again.
    pub fn forget(&self, asked: &str) {
        self.entries.lock().remove(asked);
    }

    pub(super) fn get(&self, asked: &str) -> Option<Cached> {
        let entry = self.entries.lock().get(asked)?.clone();
        Some(if Instant::now() < entry.fresh_until {
            Cached::Fresh(entry.found)
        } else {
            Cached::Stale {
                found: entry.found,
                etag: entry.etag,
            }
        })
    }

    pub(super) fn put(&self, asked: &str, found: &Discovered, headers: &HeaderMap) {
        let Some(lifetime) = lifetime(headers) else {
            self.forget(asked);
            return;
        };
        let entry = Entry {
            found: found.clone(),
            etag: text(headers, "etag").map(str::to_owned),
            fresh_until: Instant::now() + lifetime,
        };
        let mut entries = self.entries.lock();
        if entries.len() >= MAX_ENTRIES && !entries.contains_key(asked) {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.fresh_until);
            if let Some(oldest) = oldest.map(|(asked, _)| asked.clone()) {
                entries.remove(&oldest);
            }
        }
        entries.insert(asked.to_owned(), entry);
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// How long an answer stays fresh; `None` if it must not be kept.
fn lifetime(headers: &HeaderMap) -> Option<Duration> {
    let control = text(headers, "cache-control").unwrap_or_default();
    let mut lifetime = DEFAULT_LIFETIME;
    for directive in control.split(',') {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" => return None,
            "no-cache" => return Some(Duration::ZERO),
            "max-age" => {
                let seconds = value.trim().trim_matches('"').parse().unwrap_or(0);
                let age = text(headers, "age").and_then(|age| age.trim().parse().ok());
                lifetime = Duration::from_secs(seconds)
                    .saturating_sub(Duration::from_secs(age.unwrap_or(0)));
            }
            _ => {}
        }
    }
    Some(lifetime.min(MAX_LIFETIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_control_decides_and_silence_means_five_minutes() {
        let of = |control: &str, age: &str| {
            let mut headers = HeaderMap::new();
            if !control.is_empty() {
                headers.insert("cache-control", control.parse().unwrap());
            }
            if !age.is_empty() {
                headers.insert("age", age.parse().unwrap());
            }
            lifetime(&headers).map(|lifetime| lifetime.as_secs())
        };
        assert_eq!(of("", ""), Some(300));
        assert_eq!(of("public, max-age=60", ""), Some(60));
        assert_eq!(of("public, Max-Age=60", "50"), Some(10));
        assert_eq!(of("max-age=60", "90"), Some(0));
        assert_eq!(of("no-cache, max-age=60", ""), Some(0));
        assert_eq!(of("no-store", ""), None);
        assert_eq!(of("max-age=99999999999", ""), Some(24 * 3600));
        assert_eq!(of("max-age=x", ""), Some(0));
    }
}
