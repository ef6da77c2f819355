//! `[retention]`: how long is kept what has ended, or rests.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use nuncio_engine::Retention;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How long is kept what has ended, or rests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RetentionConfig {
    /// Ended tasks, from their last status: `"30d"`, `"12h"`, or `"never"` to keep them.
    pub(crate) tasks: Age,
    /// The logs of ended tasks, from the same time; then streams cannot begin at older positions.
    pub(crate) events: Age,
    /// Sessions of agents, from the last time that something was written to one; and whose the tasks and
    /// contexts of agents with `pass_through` are, from their last use.
    pub(crate) sessions: Age,
    /// The time between two sweeps.
    pub(crate) sweep_seconds: u64,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        let retention = Retention::default();
        Self {
            tasks: Age(retention.tasks),
            events: Age(retention.events),
            sessions: Age(retention.sessions),
            sweep_seconds: retention.every.as_secs(),
        }
    }
}

impl RetentionConfig {
    /// The engine's own settings.
    pub(crate) fn settings(&self) -> Retention {
        let mut retention = Retention::default();
        retention.tasks = self.tasks.0;
        retention.events = self.events.0;
        retention.sessions = self.sessions.0;
        retention.every = Duration::from_secs(self.sweep_seconds);
        retention
    }
}

/// After what time something goes; `None` if never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age(pub(crate) Option<Duration>);

const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
/// A hundred years.
const LONGEST: u64 = 36_500 * 86_400;

impl Age {
    fn parse(text: &str) -> Option<Self> {
        if text == "never" || text == "0" {
            return Some(Self(None));
        }
        let (unit, factor) = UNITS.into_iter().find(|(unit, _)| text.ends_with(unit))?;
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        let seconds = number.checked_mul(factor).filter(|s| *s <= LONGEST)?;
        Some(Self((seconds > 0).then(|| Duration::from_secs(seconds))))
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(seconds) = self.0.map(|age| age.as_secs()) else {
            return f.write_str("never");
        };
        let fits = |(_, factor): &(&str, u64)| seconds.is_multiple_of(*factor);
        let (unit, factor) = UNITS.into_iter().find(fits).unwrap_or(("s", 1));
        write!(f, "{}{unit}", seconds / factor)
    }
}

impl Serialize for Age {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Age {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visit;

        impl Visitor<'_> for Visit {
            type Value = Age;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"30d\", \"12h\", or \"never\"")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Age, E> {
                Age::parse(text).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Age, E> {
                match number {
                    0 => Ok(Age(None)),
                    _ => Err(E::invalid_value(de::Unexpected::Signed(number), &self)),
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Age, E> {
                match number {
                    0 => Ok(Age(None)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(number), &self)),
                }
            }
        }

        deserializer.deserialize_any(Visit)
    }
}

impl JsonSchema for Age {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Age".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "string", "pattern": "^(never|0|[0-9]+[dhms])$" },
                { "const": 0 }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RetentionConfig, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn ages_are_read_and_written() {
        let day = Duration::from_secs(86_400);
        for (text, age, written) in [
            ("\"30d\"", Some(30 * day), "30d"),
            ("\"36h\"", Some(day * 3 / 2), "36h"),
            ("\"48h\"", Some(2 * day), "2d"),
            ("\"90s\"", Some(Duration::from_secs(90)), "90s"),
            ("\"never\"", None, "never"),
            ("\"0\"", None, "never"),
            ("\"0d\"", None, "never"),
            ("0", None, "never"),
        ] {
            let read = read(&format!("tasks = {text}")).unwrap();
            assert_eq!(read.tasks, Age(age), "{text}");
            assert_eq!(read.tasks.to_string(), written);
            assert_eq!(read.settings().tasks, age);
        }
        let bad = [
            "\"\"",
            "\"d\"",
            "\"-1d\"",
            "\"1w\"",
            "\"1.5d\"",
            "\"9999999d\"",
            "30",
            "true",
        ];
        for text in bad {
            let refused = read(&format!("events = {text}")).unwrap_err();
            assert!(
                refused.contains("a time such as \"30d\""),
                "{text}: {refused}"
            );
        }
    }
    #[test]
    fn sessions_are_kept_for_ninety_days_or_as_long_as_said() {
        let day = Duration::from_secs(86_400);
        for (text, age) in [
            ("", Some(90 * day)),
            ("sessions = \"2d\"", Some(2 * day)),
            ("sessions = \"never\"", None),
            ("sessions = 0", None),
        ] {
            assert_eq!(read(text).unwrap().settings().sessions, age, "{text}");
        }
    }
}
