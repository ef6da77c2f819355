//! `[auth]`: who may call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuthConfig {
    /// Whether calls without a key are taken; yes on loopback without keys if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) anonymous: Option<bool>,
    /// The keys; `nuncio keys create` makes one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) keys: Vec<KeyConfig>,
}

/// One key: its hash, and what it stands for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyConfig {
    /// SHA-256 of the key in hexadecimal; the key itself is not kept.
    pub(crate) sha256: String,
    /// Whose tasks it sees.
    pub(crate) caller: String,
    /// Where.
    #[serde(default = "default_workspace")]
    pub(crate) workspace: String,
}

fn default_workspace() -> String {
    "default".to_owned()
}

impl AuthConfig {
    /// Whether calls without a key are taken.
    pub(crate) fn takes_anonymous(&self) -> bool {
        self.anonymous.unwrap_or(self.keys.is_empty())
    }
}

impl KeyConfig {
    /// The hash as bytes; `None` if it is not 64 hexadecimal digits.
    pub(crate) fn hash(&self) -> Option<[u8; 32]> {
        let digits = self.sha256.as_bytes();
        let mut hash = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = [pair[0], pair[1]].map(|digit| (digit as char).to_digit(16));
            *byte = u8::try_from(high? * 16 + low?).ok()?;
        }
        Some(hash)
    }
}
