//! The content of a message from its flags, in the order in which they were given.

use std::io::Read as _;
use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use nuncio_protocol::Part;

use crate::outcome::{Failure, Outcome};

/// One flag about content.
#[derive(Clone, Debug, PartialEq, Eq)]
enum PartFlag {
    Text(String),
    File(String),
    Data(String),
    MediaType(String),
}

/// The flags about content, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartFlags(Vec<PartFlag>);

type Make = fn(String) -> PartFlag;

const FLAGS: &[(&str, &str, &str, Make)] = &[
    (
        "text",
        "TEXT",
        "A text part; may be repeated",
        PartFlag::Text,
    ),
    (
        "file",
        "PATH",
        "A part with the content of a file, or a reference if it is a URL",
        PartFlag::File,
    ),
    (
        "data",
        "PATH",
        "A part with the JSON of a file; `-` reads stdin",
        PartFlag::Data,
    ),
    (
        "media-type",
        "TYPE",
        "The media type of the part before it [default: by the file's name]",
        PartFlag::MediaType,
    ),
];
const POSITIONAL: &str = "message";

impl Args for PartFlags {
    fn augment_args(command: Command) -> Command {
        let positional = Arg::new(POSITIONAL)
            .value_name("MESSAGE")
            .help("The text to send; `-` reads stdin")
            .action(ArgAction::Append)
            .num_args(0..=1)
            .allow_hyphen_values(false);
        FLAGS.iter().fold(
            command.arg(positional),
            |command, (name, value, help, _)| {
                let flag = Arg::new(*name).long(*name).value_name(*value).help(*help);
                command.arg(
                    flag.action(ArgAction::Append)
                        .allow_hyphen_values(*name == "text"),
                )
            },
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PartFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let flags = FLAGS.iter().map(|(name, .., make)| (*name, *make));
        let all = flags.chain([(POSITIONAL, PartFlag::Text as Make)]);
        let mut found: Vec<(usize, PartFlag)> = Vec::new();
        for (name, make) in all {
            let indices = matches.indices_of(name).into_iter().flatten();
            let values = matches.get_many::<String>(name).into_iter().flatten();
            let is_stdin = |value: &String| name == POSITIONAL && value == "-";
            found.extend(indices.zip(values).map(|(index, value)| match value {
                value if is_stdin(value) => (index, PartFlag::File("-".to_owned())),
                value => (index, make(value.clone())),
            }));
        }
        found.sort_by_key(|(index, _)| *index);
        Ok(Self(found.into_iter().map(|(_, flag)| flag).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl PartFlags {
    /// The parts, with the content of files and stdin read.
    ///
    /// # Errors
    /// No content at all, a media type without a part, a file that cannot be read, stdin twice.
    pub(crate) fn parts(&self) -> Outcome<Vec<Part>> {
        let mut parts: Vec<Part> = Vec::new();
        let mut stdin = Stdin::default();
        let mut typed = true;
        for flag in &self.0 {
            if let PartFlag::MediaType(kind) = flag {
                if typed {
                    return Err(
                        Failure::usage(format!("--media-type {kind} follows no part"))
                            .hint("put it right after the --text, --file or --data it is about"),
                    );
                }
                if let Some(part) = parts.last_mut() {
                    part.media_type = Some(kind.clone());
                }
                typed = true;
                continue;
            }
            parts.push(match flag {
                PartFlag::File(path) if path == "-" => Part::text(stdin.text()?),
                PartFlag::File(path) => file(path)?,
                PartFlag::Data(path) => data(path, &mut stdin)?,
                PartFlag::Text(text) | PartFlag::MediaType(text) => Part::text(text.as_str()),
            });
            typed = false;
        }
        if parts.is_empty() {
            return Err(Failure::usage("there is nothing to send")
                .hint("nuncio send \"hello\", or --text, --file, --data, or `-` for stdin"));
        }
        Ok(parts)
    }
}

#[derive(Default)]
struct Stdin {
    read: bool,
}

impl Stdin {
    fn text(&mut self) -> Outcome<String> {
        if std::mem::replace(&mut self.read, true) {
            return Err(Failure::usage("stdin can be read only once"));
        }
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Failure::usage(format!("failed to read stdin: {error}")))?;
        // What `echo` and here-documents add is not part of the message.
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }
}

fn file(path: &str) -> Outcome<Part> {
    if path.starts_with("http://") || path.starts_with("https://") {
        let name = path.split(['?', '#']).next().unwrap_or(path);
        return Ok(named(
            Part::url(path),
            Path::new(name.rsplit_once("://").map_or("", |(_, n)| n)),
            true,
        ));
    }
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("failed to read {path}: {error}")))?;
    Ok(named(Part::raw(bytes), Path::new(path), false))
}

/// The part with the file's name and what its ending says.
fn named(mut part: Part, path: &Path, is_url: bool) -> Part {
    part.media_type = media_type(path).map(str::to_owned);
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    // A bare host is no file name.
    part.filename = name.filter(|_| !is_url || path.components().count() > 1);
    part
}

fn data(path: &str, stdin: &mut Stdin) -> Outcome<Part> {
    let text = if path == "-" {
        stdin.text()?
    } else {
        std::fs::read_to_string(path).map_err(|error| {
            let failure = Failure::usage(format!("failed to read {path}: {error}"));
            if path.trim_start().starts_with(['{', '[']) {
                failure.hint("--data wants a file; pipe the JSON in with --data -")
            } else {
                failure
            }
        })?
    };
    let value: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("failed to read {path} as JSON: {error}")))?;
    Ok(Part::data(value))
}

/// The media type that a file's ending stands for.
fn media_type(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "txt" | "text" | "log" => "text/plain",
        "md" => "text/markdown",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "xml" => "application/xml",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::PartContent;

    use super::*;

    fn flags(arguments: &[&str]) -> PartFlags {
        let command = PartFlags::augment_args(Command::new("send"));
        let matches = command.get_matches_from(["send"].iter().chain(arguments));
        PartFlags::from_arg_matches(&matches).unwrap()
    }

    #[test]
    fn parts_keep_the_order_of_their_flags() {
        let flags = flags(&[
            "--text",
            "a",
            "hello",
            "--media-type",
            "text/x",
            "--file",
            "https://h.example/d/x.pdf?q=1",
            "--text",
            "b",
        ]);
        let parts = flags.parts().unwrap();
        let texts: Vec<_> = parts.iter().map(Part::as_text).collect();
        assert_eq!(texts, [Some("a"), Some("hello"), None, Some("b")]);
        assert_eq!(parts[1].media_type.as_deref(), Some("text/x"));
        assert_eq!(
            parts[2].content,
            PartContent::Url("https://h.example/d/x.pdf?q=1".to_owned())
        );
        assert_eq!(parts[2].filename.as_deref(), Some("x.pdf"));
        assert_eq!(parts[2].media_type.as_deref(), Some("application/pdf"));
    }

    #[test]
    fn a_media_type_needs_its_part() {
        for arguments in [
            &["--media-type", "a/b"][..],
            &["x", "--media-type", "a/b", "--media-type", "c/d"],
            &[],
        ] {
            assert!(flags(arguments).parts().is_err(), "{arguments:?}");
        }
    }
}
