//! Asks an agent one question and shows the answer as it comes: `ask URL TEXT [JSONRPC|HTTP+JSON|GRPC]`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nuncio_client::{ClientBuilder, Conversation, TextChange, TextView};
use nuncio_egress::{Egress, EgressPolicy};
use nuncio_protocol::{Binding, Ids, Part};

/// Ids good enough for one run; a real program uses random ones.
#[derive(Debug)]
struct Counted(AtomicU64);

impl Ids for Counted {
    fn next(&self) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        format!("ask-{}-{number}", std::process::id())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, text, rest @ ..] = arguments.as_slice() else {
        return Err("usage: ask URL TEXT [JSONRPC|HTTP+JSON|GRPC]".into());
    };
    let mut builder = ClientBuilder::new(Egress::new(EgressPolicy::open())?);
    if let Some(binding) = rest.first().and_then(|name| Binding::from_name(name)) {
        builder = builder.binding(binding);
    }
    let client = builder.connect(url).await?;
    let ids = Arc::new(Counted(AtomicU64::new(1)));
    let mut conversation = Conversation::new(client, ids);
    let mut view = TextView::new();
    let reply = conversation
        .ask_parts(vec![Part::text(text)], |event| {
            if let TextChange::Append(more) = view.apply(event.response()) {
                print!("{more}");
            }
        })
        .await?;
    println!();
    println!("{:?}: {}", reply.state(), reply.text());
    if let Some(question) = reply.question() {
        println!("asks: {}", question.text());
    }
    Ok(())
}
