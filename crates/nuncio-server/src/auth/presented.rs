//! What a request holds that may prove who sent it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, COOKIE};
use http::request::Parts;

use super::KeyPlace;

/// The credential of a request; two different ones at once are as good as a wrong one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Presented<'a> {
    Nothing,
    /// A key, or a token if it comes as one.
    Secret(Cow<'a, [u8]>),
    /// A name with its key, as HTTP Basic has them.
    Named(String, Vec<u8>),
    Unusable,
}

impl<'a> Presented<'a> {
    /// Looks into the headers, and wherever else keys may be.
    pub(super) fn of(parts: &'a Parts, places: &[KeyPlace], basic: bool) -> Self {
        let mut found = Self::Nothing;
        for place in places {
            for key in keys_at(parts, place) {
                found = found.and(Self::Secret(key));
            }
        }
        for value in parts.headers.get_all(AUTHORIZATION) {
            found = found.and(authorization(value.as_bytes(), basic));
        }
        found
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, found) => found,
            (found, other) if found == other => found,
            _ => Self::Unusable,
        }
    }
}

fn authorization(value: &[u8], basic: bool) -> Presented<'_> {
    let value = value.trim_ascii();
    let space = value.iter().position(u8::is_ascii_whitespace);
    let (scheme, rest) = value.split_at(space.unwrap_or(value.len()));
    let rest = rest.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Presented::Secret(rest.into());
    }
    if basic && scheme.eq_ignore_ascii_case(b"basic") {
        let decoded = STANDARD.decode(rest).unwrap_or_default();
        let mut halves = decoded.splitn(2, |b| *b == b':');
        if let (Some(name), Some(key)) = (halves.next(), halves.next()) {
            let name = String::from_utf8_lossy(name).into_owned();
            return Presented::Named(name, key.to_vec());
        }
    }
    Presented::Unusable
}

fn keys_at<'a>(parts: &'a Parts, place: &KeyPlace) -> Vec<Cow<'a, [u8]>> {
    match place {
        KeyPlace::Header(name) => {
            let values = parts.headers.get_all(name).iter();
            values.map(|value| value.as_bytes().into()).collect()
        }
        KeyPlace::Query(name) => {
            let query = parts.uri.query().unwrap_or_default();
            form_urlencoded::parse(query.as_bytes())
                .filter(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned().into_bytes().into())
                .collect()
        }
        KeyPlace::Cookie(name) => cookies(&parts.headers, name),
    }
}

fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> Vec<Cow<'a, [u8]>> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines.flat_map(|line| line.as_bytes().split(|b| *b == b';'));
    let values = pairs.filter_map(|pair| {
        let pair = pair.trim_ascii();
        let value = pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(value.into())
    });
    values.collect()
}
