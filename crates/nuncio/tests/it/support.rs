//! Running the binary.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The binary in an environment of its own.
pub(crate) fn nuncio(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nuncio"));
    command
        .env_clear()
        .env("HOME", folder)
        .env("PATH", "/usr/bin:/bin")
        .current_dir(folder);
    command.stdin(Stdio::null());
    command
}

/// What a finished command has said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "one document: {self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON lines on stdout.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let lines = self.out.lines().map(serde_json::from_str);
        lines
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The first field with a label on stdout.
    pub(crate) fn field(&self, label: &str) -> String {
        let start = format!("{label}: ");
        let found = self.out.lines().find_map(|line| line.strip_prefix(&start));
        found
            .unwrap_or_else(|| panic!("no {label}: {self:?}"))
            .to_owned()
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// Runs a command to its end.
pub(crate) fn run(mut command: Command, input: &str) -> Said {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A program that does not want its input is free not to read it.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A process that does not outlive its test, however that ends: killed when dropped.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }
}

impl Deref for Process {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Process {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running server; killed when dropped.
pub(crate) struct Server {
    child: Process,
    pub(crate) folder: TempDir,
    pub(crate) url: String,
    /// What it said before and with `ready`.
    pub(crate) lines: Vec<String>,
}

/// The rules of the interop agent, served as an example.
pub(crate) fn example(name: &str) -> String {
    format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

impl Server {
    /// The echo agent, with nothing configured.
    pub(crate) fn echo() -> Self {
        Self::start(&[] as &[&str])
    }

    /// An example, kept in memory.
    pub(crate) fn example(name: &str) -> Self {
        Self::start(&["--store", "memory:", "--config", &example(name)])
    }

    /// A configuration of the test's own.
    pub(crate) fn configured(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("nuncio.toml");
        std::fs::write(&path, text).unwrap();
        Self::start_in(folder, &["--config".as_ref(), path.as_os_str()])
    }

    pub(crate) fn start(arguments: &[impl AsRef<OsStr>]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), arguments)
    }

    /// Starts on a free port; the data folder is `nuncio-data` in `folder`.
    pub(crate) fn start_in(folder: TempDir, arguments: &[impl AsRef<OsStr>]) -> Self {
        Self::start_at(folder, "127.0.0.1:0", arguments)
    }

    pub(crate) fn start_at(
        folder: TempDir,
        address: &str,
        arguments: &[impl AsRef<OsStr>],
    ) -> Self {
        let mut command = nuncio(folder.path());
        command.args(["serve", "--listen", address]).args(arguments);
        let log = std::fs::File::create(folder.path().join("server.log")).unwrap();
        let mut child = Process::start(command.stdout(Stdio::piped()).stderr(log));
        let mut lines = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            lines.push(line.unwrap());
            if lines.last().is_some_and(|line| line.starts_with("ready ")) {
                break;
            }
        }
        let url = lines
            .last()
            .and_then(|line| line.strip_prefix("ready "))
            .map(str::to_owned);
        let log = || std::fs::read_to_string(folder.path().join("server.log")).unwrap();
        let url = url.unwrap_or_else(|| panic!("the server is not ready: {}", log()));
        Self {
            child,
            folder,
            url,
            lines,
        }
    }

    /// Runs a client command against this server; its words come before `--agent-card`.
    pub(crate) fn run(&self, words: &[&str], more: &[&str]) -> Said {
        self.run_with(words, more, &[], "")
    }

    pub(crate) fn run_with(
        &self,
        words: &[&str],
        more: &[&str],
        environment: &[(&str, &str)],
        input: &str,
    ) -> Said {
        let mut command = self.command(words, more);
        command.envs(environment.iter().copied());
        run(command, input)
    }

    pub(crate) fn command(&self, words: &[&str], more: &[&str]) -> Command {
        let mut command = nuncio(self.folder.path());
        command
            .args(words)
            .args(["--agent-card", &self.url])
            .args(more);
        command
    }

    pub(crate) fn send(&self, more: &[&str]) -> Said {
        self.run(&["send"], more)
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits for the end and gives the exit code.
    pub(crate) fn ends_within(&mut self, limit: Duration) -> i32 {
        wait(&mut self.child, limit)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap()
    }

    /// Kills the server as a power cut would, and gives its folder.
    pub(crate) fn crash(self) -> TempDir {
        drop(self.child);
        self.folder
    }
}

pub(crate) fn signal(process: u32, name: &str) {
    let done = Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status();
    assert!(done.unwrap().success(), "kill -{name} {process}");
}

/// Waits for a child and gives its exit code, -1 for a signal.
#[track_caller]
pub(crate) fn wait(child: &mut Child, limit: Duration) -> i32 {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        assert!(began.elapsed() < limit, "still running after {limit:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until something is so; gives up after a minute.
#[track_caller]
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "in vain");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until a line with this beginning comes.
pub(crate) fn line_from(reader: impl std::io::Read, beginning: &str) -> String {
    let lines = BufReader::new(reader).lines();
    let mut seen = Vec::new();
    for line in lines {
        let line = line.unwrap();
        if line.starts_with(beginning) {
            return line;
        }
        seen.push(line);
    }
    panic!("no line begins with {beginning:?}: {seen:?}")
}

/// Reads to the end.
pub(crate) fn rest(mut reader: impl std::io::Read) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

/// A whole reply of a server.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Exchange {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// One HTTP/1.1 exchange, as bytes: nothing of ours stands between test and server.
pub(crate) fn exchange(
    url: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Exchange {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(head.as_bytes()).unwrap();
    let whole = rest(stream);
    let (head, body) = whole.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let chunked = headers.iter().any(|(name, _)| name == "transfer-encoding");
    Exchange {
        status: status.parse().unwrap(),
        body: if chunked {
            unchunked(body)
        } else {
            body.to_owned()
        },
        headers,
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        whole.push_str(&rest[..size]);
        body = rest[size..].strip_prefix("\r\n").unwrap_or_default();
    }
    whole
}
