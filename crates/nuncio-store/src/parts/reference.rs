//! What stands in a row for a part that is kept elsewhere.

use bytes::Bytes;
use nuncio_protocol::{Message, Part, PartContent, StreamResponse, Task};
use sha2::{Digest as _, Sha256};

/// The scheme of our references; a URL of a user that begins so is written with [`LITERAL`].
const SCHEME: &str = "nuncio-part:";
const REFERENCE: &str = "nuncio-part:sha256:";
const LITERAL: &str = "nuncio-part:url:";

/// Content by its hash, with its size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reference {
    pub(super) digest: [u8; 32],
    pub(super) size: u64,
}

impl Reference {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self {
            digest: Sha256::digest(bytes).into(),
            size: bytes.len() as u64,
        }
    }

    fn to_url(self) -> String {
        format!("{REFERENCE}{}:{}", hex(&self.digest), self.size)
    }

    /// What a stored part refers to.
    pub(super) fn of_part(part: &Part) -> Option<Self> {
        match &part.content {
            PartContent::Url(url) => Self::parse(url),
            _ => None,
        }
    }

    fn parse(url: &str) -> Option<Self> {
        let (digits, size) = url.strip_prefix(REFERENCE)?.split_once(':')?;
        let mut digest = [0; 32];
        if digits.len() != 64 || !digits.is_ascii() {
            return None;
        }
        for (n, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).ok()?;
        }
        let size = size.parse().ok()?;
        Some(Self { digest, size })
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Something that holds parts.
pub(super) trait HasParts {
    /// Calls `each` with every part.
    fn each_part(&self, each: &mut dyn FnMut(&Part));
    /// Calls `each` with every part, to be changed.
    fn each_part_mut(&mut self, each: &mut dyn FnMut(&mut Part));
}

impl HasParts for Message {
    fn each_part(&self, each: &mut dyn FnMut(&Part)) {
        self.parts.iter().for_each(each);
    }

    fn each_part_mut(&mut self, each: &mut dyn FnMut(&mut Part)) {
        self.parts.iter_mut().for_each(each);
    }
}

impl HasParts for Task {
    fn each_part(&self, each: &mut dyn FnMut(&Part)) {
        for artifact in &self.artifacts {
            artifact.parts.iter().for_each(&mut *each);
        }
        for message in self.history.iter().chain(&self.status.message) {
            message.each_part(each);
        }
    }

    fn each_part_mut(&mut self, each: &mut dyn FnMut(&mut Part)) {
        for artifact in &mut self.artifacts {
            artifact.parts.iter_mut().for_each(&mut *each);
        }
        for message in self.history.iter_mut().chain(&mut self.status.message) {
            message.each_part_mut(each);
        }
    }
}

impl HasParts for StreamResponse {
    fn each_part(&self, each: &mut dyn FnMut(&Part)) {
        match self {
            Self::Task(task) => task.each_part(each),
            Self::Message(message) => message.each_part(each),
            Self::StatusUpdate(update) => {
                if let Some(message) = &update.status.message {
                    message.each_part(each);
                }
            }
            Self::ArtifactUpdate(update) => update.artifact.parts.iter().for_each(each),
            _ => {}
        }
    }

    fn each_part_mut(&mut self, each: &mut dyn FnMut(&mut Part)) {
        match self {
            Self::Task(task) => task.each_part_mut(each),
            Self::Message(message) => message.each_part_mut(each),
            Self::StatusUpdate(update) => {
                if let Some(message) = &mut update.status.message {
                    message.each_part_mut(each);
                }
            }
            Self::ArtifactUpdate(update) => update.artifact.parts.iter_mut().for_each(each),
            _ => {}
        }
    }
}

/// Whether anything has to be replaced before it is stored.
pub(super) fn is_to_take_out(whole: &impl HasParts, above: usize) -> bool {
    let mut found = false;
    whole.each_part(&mut |part| {
        found |= match &part.content {
            PartContent::Raw(bytes) => bytes.len() > above,
            PartContent::Url(url) => url.starts_with(SCHEME),
            _ => false,
        };
    });
    found
}

/// Replaces large parts by references, and gives what they held.
pub(super) fn take_out(whole: &mut impl HasParts, above: usize) -> Vec<(Reference, Bytes)> {
    let mut taken = Vec::new();
    whole.each_part_mut(&mut |part| {
        let replaced = match &part.content {
            PartContent::Raw(bytes) if bytes.len() > above => {
                let reference = Reference::of(bytes);
                taken.push((reference, bytes.clone()));
                reference.to_url()
            }
            PartContent::Url(url) if url.starts_with(SCHEME) => format!("{LITERAL}{url}"),
            _ => return,
        };
        part.content = PartContent::Url(replaced);
    });
    taken
}

/// What is referred to, each once, and whether anything is to be put back at all.
pub(super) fn referred(whole: &impl HasParts) -> (Vec<Reference>, bool) {
    let (mut found, mut any) = (Vec::new(), false);
    whole.each_part(&mut |part| {
        let PartContent::Url(url) = &part.content else {
            return;
        };
        any |= url.starts_with(SCHEME);
        if let Some(reference) = Reference::parse(url)
            && !found.contains(&reference)
        {
            found.push(reference);
        }
    });
    (found, any)
}

/// Replaces references by what they stand for, and written URLs by what they were.
pub(super) fn put_back(whole: &mut impl HasParts, content: &dyn Fn(Reference) -> Option<Bytes>) {
    whole.each_part_mut(&mut |part| {
        let PartContent::Url(url) = &part.content else {
            return;
        };
        if let Some(literal) = url.strip_prefix(LITERAL) {
            part.content = PartContent::Url(literal.to_owned());
        } else if let Some(bytes) = Reference::parse(url).and_then(content) {
            part.content = PartContent::Raw(bytes);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_comes_back() {
        let urls = [
            "https://one.example/x".to_owned(),
            "nuncio-part:sha256:zz".to_owned(),
            Reference::of(b"another").to_url(),
            "nuncio-part:url:nuncio-part:url:".to_owned(),
        ];
        let mut parts: Vec<_> = urls.iter().map(Part::url).collect();
        parts.push(Part::raw("small").with_media_type("a/b"));
        parts.push(Part::raw("large enough").with_media_type("c/d"));
        parts.push(Part::text("a text of any length stays where it is"));
        let message = Message::user("m", parts);
        assert!(is_to_take_out(&message, 5));
        let mut stored = message.clone();
        let taken = take_out(&mut stored, 5);
        assert_eq!(
            taken,
            [(Reference::of(b"large enough"), Bytes::from("large enough"))]
        );
        assert_eq!(stored.parts[5].media_type.as_deref(), Some("c/d"));
        let (references, any) = referred(&stored);
        assert_eq!((references, any), (vec![taken[0].0], true));
        put_back(&mut stored, &|reference| {
            assert_eq!(reference, taken[0].0);
            Some(taken[0].1.clone())
        });
        assert_eq!(stored, message);
    }

    #[test]
    fn most_messages_are_left_alone() {
        let message = Message::user("m", vec![Part::raw("12345"), Part::url("http://x")]);
        assert!(!is_to_take_out(&message, 5));
        assert_eq!(referred(&message), (Vec::new(), false));
    }
}
