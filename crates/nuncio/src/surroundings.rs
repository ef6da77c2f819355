//! What the program takes from its surroundings: environment, folders, chance.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The environment as it was at the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Variables whose names and values are text.
    pub(crate) environment: BTreeMap<String, String>,
    /// The working directory.
    pub(crate) directory: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            environment: std::env::vars_os().filter_map(text).collect(),
            directory: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// A variable, unless it is empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.environment
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// The user's folder for configuration.
    pub(crate) fn configuration_folder(&self) -> Option<PathBuf> {
        let named = self.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        named.or_else(|| Some(PathBuf::from(self.variable("HOME")?).join(".config")))
    }
}

/// Random bytes for secrets.
///
/// # Errors
/// When the system has none.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
