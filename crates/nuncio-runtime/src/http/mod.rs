//! Agents behind HTTP: the message goes out as JSON, events come back as JSON or as a stream.
//!
//! `agent` asks and tries again, `answer` reads what comes, `headers` judges which headers may be
//! sent. The format is that of `foreign`; every call goes through nuncio-egress.

mod agent;
mod answer;
mod headers;
mod settings;

pub use agent::HttpAgent;
pub use headers::{HeaderFault, header_name, secret_header};
pub use settings::HttpSettings;
