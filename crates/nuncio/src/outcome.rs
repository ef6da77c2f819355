//! How a command ends: what is printed about a failure, and the exit code.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

/// What a command gives.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// Why a command did not do its work. The names are those of the a2a-cli specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Usage,
    CardNotFound,
    CardInvalid,
    Unreachable,
    CredentialsMissing,
    AuthFailed,
    Timeout,
    Internal,
    /// An error of the protocol, under its own name.
    Protocol(&'static str),
}

impl Code {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Usage => "A2ACLI_ERR_USAGE",
            Self::CardNotFound => "A2ACLI_ERR_CARD_NOT_FOUND",
            Self::CardInvalid => "A2ACLI_ERR_CARD_INVALID",
            Self::Unreachable => "A2ACLI_ERR_UNREACHABLE",
            Self::CredentialsMissing => "A2ACLI_ERR_CREDENTIALS_MISSING",
            Self::AuthFailed => "A2ACLI_ERR_AUTH_FAILED",
            Self::Timeout => "A2ACLI_ERR_TIMEOUT",
            Self::Internal => "A2ACLI_ERR_INTERNAL",
            Self::Protocol(name) => name,
        }
    }

    /// The exit code that belongs to it.
    pub(crate) fn exit(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::CardNotFound | Self::Unreachable => 3,
            Self::CredentialsMissing | Self::AuthFailed => 4,
            Self::Timeout => 5,
            Self::CardInvalid | Self::Internal | Self::Protocol(_) => 1,
        }
    }
}

/// A command that did not do its work, told to whoever called it.
#[derive(Debug)]
pub(crate) enum Failure {
    /// With a reason to print.
    Told(Box<Told>),
    /// The result that was printed says it all; the exit code is 1.
    Shown,
    /// The reader of our output has gone: nothing to print, nobody to tell.
    ClosedPipe,
    /// The user pressed Ctrl-C; what to do next has been printed.
    Interrupted,
}

/// The reason of a failure.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: Code,
    /// `failed to …: cause`.
    pub(crate) message: String,
    /// What to do next.
    pub(crate) hint: Option<String>,
    /// The code on the wire, if the error came from there.
    pub(crate) a2a_code: Option<Value>,
}

/// After Ctrl-C, as shells have it.
const INTERRUPTED: u8 = 130;

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Told(Box::new(Told {
            code,
            message,
            hint: None,
            a2a_code: None,
        }))
    }

    /// A failure for no reason with a better name.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    /// A mistake in the arguments.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Code::Usage, message)
    }

    /// What happened and what to do next, in one line.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Self::Told(told) => match &told.hint {
                Some(hint) => format!("{} ({hint})", told.message),
                None => told.message.clone(),
            },
            Self::Shown | Self::ClosedPipe | Self::Interrupted => "it was interrupted".to_owned(),
        }
    }

    /// The same with what to do next, if nothing was said about that yet.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.hint.get_or_insert_with(|| hint.into());
        }
        self
    }

    /// The same with another word on what to do next.
    #[must_use]
    pub(crate) fn rather(mut self, hint: impl Into<String>) -> Self {
        if let Self::Told(told) = &mut self {
            told.hint = Some(hint.into());
        }
        self
    }

    /// The same with the code on the wire.
    #[must_use]
    pub(crate) fn a2a_code(mut self, code: impl Into<Value>) -> Self {
        if let Self::Told(told) = &mut self {
            told.a2a_code = Some(code.into());
        }
        self
    }

    /// Prints it and gives the exit code.
    pub(crate) fn report(self, json: bool) -> ExitCode {
        let told = match self {
            Self::Told(told) => told,
            Self::Shown => return ExitCode::from(1),
            Self::ClosedPipe => return ExitCode::SUCCESS,
            Self::Interrupted => return ExitCode::from(INTERRUPTED),
        };
        // Nobody is left to tell when printing fails.
        let _ = if json {
            print(&(told.envelope() + "\n"))
        } else {
            warn(&told.text())
        };
        ExitCode::from(told.code.exit())
    }
}

impl Told {
    /// The error envelope of the a2a-cli specification, on one line.
    pub(crate) fn envelope(&self) -> String {
        let error = json!({
            "code": self.code.as_str(),
            "message": self.message,
            "hint": self.hint,
            "a2aCode": self.a2a_code,
        });
        crate::client::escape_json(&json!({ "error": error }).to_string())
    }

    fn text(&self) -> String {
        let mut text = format!("error: {}\n", crate::client::escape(&self.message));
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "hint: {}", crate::client::escape(hint));
        }
        if self.code != Code::Internal {
            let _ = writeln!(text, "code: {}", self.code.as_str());
        }
        text
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::internal(format!("failed to write the output: {error}"))
        }
    }
}

/// Writes to stdout and flushes.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Writes to stderr.
pub(crate) fn warn(text: &str) -> io::Result<()> {
    io::stderr().lock().write_all(text.as_bytes())
}

/// Ends a run whose arguments asked for help or the version, or made no sense.
pub(crate) fn end_of_parsing(error: &clap::Error, json: bool) -> ExitCode {
    let text = error.render().to_string();
    if !error.use_stderr() {
        return print(&text).map_or_else(|e| Failure::from(e).report(json), |()| ExitCode::SUCCESS);
    }
    if !json {
        let _ = warn(&text);
        return ExitCode::from(Code::Usage.exit());
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines
        .next()
        .unwrap_or_default()
        .trim_start_matches("error: ")
        .to_owned();
    let tip = lines.find_map(|line| line.strip_prefix("tip: ").map(str::to_owned));
    let hint = tip.unwrap_or_else(|| "`nuncio help` shows what there is".to_owned());
    Failure::usage(message).hint(hint).report(json)
}
