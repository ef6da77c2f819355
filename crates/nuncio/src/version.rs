//! `nuncio version`.

use nuncio_protocol::Version;
use serde_json::json;

use crate::arguments::VersionArguments;
use crate::client::OutputFormat;
use crate::outcome::{Outcome, print};

/// Prints the version of the program and those of the protocol that it speaks.
pub(crate) fn run(arguments: &VersionArguments) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let spoken: Vec<&str> = Version::ALL
        .iter()
        .map(|version| version.as_str())
        .collect();
    let text = match arguments.output {
        OutputFormat::Text => {
            format!(
                "Tool: nuncio\nVersion: {version}\nProtocol Versions: {}\n",
                spoken.join(", ")
            )
        }
        OutputFormat::Json => {
            json!({"tool": "nuncio", "version": version, "protocolVersions": spoken}).to_string()
                + "\n"
        }
    };
    Ok(print(&text)?)
}
