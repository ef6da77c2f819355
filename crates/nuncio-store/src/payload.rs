//! The events of one commit as text.

use nuncio_protocol::Event;

/// The events as a JSON array; each is encoded once, whoever reads it.
pub(crate) fn payload(events: &[Event]) -> String {
    let size = events
        .iter()
        .map(|event| event.json().len() + 1)
        .sum::<usize>()
        + 1;
    let mut array = String::with_capacity(size);
    for event in events {
        array.push(if array.is_empty() { '[' } else { ',' });
        array.push_str(event.json());
    }
    array.push(']');
    array
}
