//! Content that came in pieces.

use nuncio_protocol::{Part, PartContent};

/// The parts with pieces of text, as a stream gives them, put together again.
pub(crate) fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut whole: Vec<Part> = Vec::new();
    for part in parts {
        match (whole.last_mut(), part.as_text()) {
            (Some(last), Some(text)) if goes_on(last, &part) => {
                if let PartContent::Text(before) = &mut last.content {
                    before.push_str(text);
                }
            }
            _ => whole.push(part),
        }
    }
    whole
}

fn goes_on(last: &Part, part: &Part) -> bool {
    let plain = |part: &Part| part.metadata.is_none() && part.filename.is_none();
    plain(last) && plain(part) && last.as_text().is_some() && last.media_type == part.media_type
}
