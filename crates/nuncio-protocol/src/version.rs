//! Protocol versions as negotiated on each request. Spec: §3.6

use std::fmt;

/// A version of the protocol that this implementation can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Version {
    /// Version 0.3.
    V0_3,
    /// Version 1.0 (texts 1.0.0 and 1.0.1).
    #[default]
    V1_0,
}

/// A version nobody here speaks, or a malformed one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("protocol version \"{asked}\" is not supported")]
pub struct UnsupportedVersion {
    /// What was asked for.
    pub asked: String,
    /// What may be asked for, oldest first.
    pub supported: Vec<Version>,
}

impl Version {
    /// Every version that is spoken, oldest first.
    pub const ALL: &'static [Self] = &[Self::V0_3, Self::V1_0];

    /// `Major.Minor`, as in the `A2A-Version` header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V0_3 => "0.3",
            Self::V1_0 => "1.0",
        }
    }

    /// Reads a header value: blanks around it and a patch number are ignored (VER-05).
    ///
    /// # Errors
    /// [`UnsupportedVersion`] for any other version and for what is no version at all.
    pub fn parse(text: &str) -> Result<Self, UnsupportedVersion> {
        let unsupported = || UnsupportedVersion {
            asked: text.trim().to_owned(),
            supported: Self::ALL.to_vec(),
        };
        let numbers: Vec<&str> = text.trim().split('.').collect();
        let well_formed = matches!(numbers.len(), 2 | 3)
            && numbers
                .iter()
                .all(|n| !n.is_empty() && n.len() <= 6 && n.bytes().all(|b| b.is_ascii_digit()));
        if !well_formed {
            return Err(unsupported());
        }
        Self::ALL
            .iter()
            .copied()
            .find(|version| {
                version
                    .as_str()
                    .split('.')
                    .eq(numbers.iter().copied().take(2))
            })
            .ok_or_else(unsupported)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// VER-05, BR-111.
    #[test]
    fn only_major_and_minor_count() {
        for good in ["1.0", " 1.0 ", "1.0.0", "1.0.1", "1.0.3"] {
            assert_eq!(Version::parse(good), Ok(Version::V1_0), "{good}");
        }
        for good in ["0.3", "0.3.0", " 0.3.12"] {
            assert_eq!(Version::parse(good), Ok(Version::V0_3), "{good}");
        }
        for bad in [
            "", "1", "abc", "99.0", "1.1", "1.0.", "1.0.0.0", "v1.0", "1.0-dev", "0.2", "0.30",
            "01.0",
        ] {
            assert!(Version::parse(bad).is_err(), "{bad}");
        }
    }
}
