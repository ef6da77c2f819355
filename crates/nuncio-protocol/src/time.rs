//! Points in time as the wire spells them; the one module that knows the date library.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A span of time as `google.protobuf.Duration` has it in JSON: seconds, as many digits of their
/// fraction as are needed, and `s`.
pub(crate) fn seconds_text(span: Duration) -> String {
    let (seconds, nanos) = (span.as_secs(), span.subsec_nanos());
    let fraction = format!(".{nanos:09}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    format!("{seconds}{fraction}s")
}

/// Reads what [`seconds_text`] writes; `None` for anything else and for spans before zero.
///
/// Whole numbers all the way: a float of 64 bits has not the digits for days in nanoseconds.
pub(crate) fn read_seconds(text: &str) -> Option<Duration> {
    let number = text.strip_suffix('s')?;
    let (seconds, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::new(seconds.parse().ok()?, nanos))
}

/// A point in time, UTC, with nanoseconds.
///
/// Reads RFC 3339 with 0 to 9 fraction digits and any offset; writes UTC with `Z` and 3, 6 or 9
/// fraction digits, as many as are needed. Years 1 to 9999. Spec: §5.6.1
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(jiff::Timestamp);

/// Why a text is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an RFC 3339 timestamp such as 2025-10-28T10:30:00.000Z")]
pub struct TimestampError;

const EARLIEST_MS: i64 = -62_135_596_800_000;
/// The date library ends a day before the year 9999 does.
const LATEST_MS: i64 = 253_402_207_200_000;

impl Timestamp {
    /// From milliseconds since 1970, held inside the years 1 to 9999.
    pub fn from_unix_ms(ms: i64) -> Self {
        let ms = ms.clamp(EARLIEST_MS, LATEST_MS);
        Self(jiff::Timestamp::from_millisecond(ms).expect("clamped to the years 1 to 9999"))
    }

    /// Milliseconds since 1970, rounded towards the past.
    pub fn unix_ms(self) -> i64 {
        self.0.as_nanosecond().div_euclid(1_000_000) as i64
    }

    /// From seconds since 1970 and nanoseconds after them, as protobuf has them.
    pub(crate) fn from_unix(seconds: i64, nanos: i32) -> Result<Self, TimestampError> {
        if !(0..1_000_000_000).contains(&nanos) {
            return Err(TimestampError);
        }
        let total = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let time = jiff::Timestamp::from_nanosecond(total).map_err(|_| TimestampError)?;
        Self(time).in_range()
    }

    /// Seconds since 1970, rounded towards the past, and nanoseconds after them.
    pub(crate) fn to_unix(self) -> (i64, i32) {
        let total = self.0.as_nanosecond();
        let seconds = total.div_euclid(1_000_000_000) as i64;
        (seconds, total.rem_euclid(1_000_000_000) as i32)
    }

    fn in_range(self) -> Result<Self, TimestampError> {
        if (EARLIEST_MS..=LATEST_MS).contains(&self.unix_ms()) {
            Ok(self)
        } else {
            Err(TimestampError)
        }
    }

    /// Reads the text form.
    ///
    /// # Errors
    /// [`TimestampError`] for anything but an RFC 3339 date, time and offset.
    pub fn parse(text: &str) -> Result<Self, TimestampError> {
        let looks_right = text.len() <= 40
            && text
                .as_bytes()
                .get(10)
                .is_some_and(|c| matches!(c, b'T' | b't' | b' '))
            && !text.contains('[');
        let parsed: jiff::Timestamp = if looks_right {
            text.parse().map_err(|_| TimestampError)?
        } else {
            return Err(TimestampError);
        };
        Self(parsed).in_range()
    }

    /// Reads the text form as it is found in answers: one without a zone is UTC.
    ///
    /// Python's `datetime.isoformat` leaves the zone out, and an agent's whole answer hangs on it.
    pub(crate) fn parse_told(text: &str) -> Result<Self, TimestampError> {
        Self::parse(text).or_else(|_| Self::parse(&format!("{text}Z")))
    }
}

/// A time that an agent tells, in a text that [`Timestamp::parse_told`] reads.
pub(crate) struct Told(pub(crate) Timestamp);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanosecond().rem_euclid(1_000_000_000);
        if nanos % 1_000_000 == 0 {
            write!(f, "{:.3}", self.0)
        } else if nanos % 1_000 == 0 {
            write!(f, "{:.6}", self.0)
        } else {
            write!(f, "{:.9}", self.0)
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Timestamp;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an RFC 3339 timestamp")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
                Timestamp::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl<'de> Deserialize<'de> for Told {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Told;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "an RFC 3339 timestamp")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Told, E> {
                Timestamp::parse_told(text).map(Told).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}
