//! Servers that may be killed, frozen and started again at the same address.

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// How a server is started, again and again.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    folder: PathBuf,
    address: SocketAddr,
    variables: Vec<(String, String)>,
}

impl Recipe {
    /// A server with this configuration; all it keeps is in `folder`.
    pub(crate) fn new(folder: &Path, config: &str) -> Self {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("nuncio.toml"), config).unwrap();
        Self {
            folder: folder.to_owned(),
            address: free_address(),
            variables: Vec::new(),
        }
    }

    /// With an environment variable.
    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts it, and waits until it is ready.
    pub(crate) fn start(&self) -> Server {
        let log = self.folder.join("server.log");
        let errors = OpenOptions::new().create(true).append(true).open(&log);
        let mut child = Command::new(env!("CARGO_BIN_EXE_nuncio"))
            .env_clear()
            .envs(self.variables.iter().cloned())
            .current_dir(&self.folder)
            .args(["serve", "--config", "nuncio.toml", "--listen"])
            .arg(self.address.to_string())
            .stdout(Stdio::piped())
            .stderr(errors.unwrap())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let server = Server {
            recipe: self.clone(),
            child,
            log,
        };
        let ready = out
            .lines()
            .map_while(Result::ok)
            .any(|line| line.starts_with("ready "));
        assert!(ready, "the server is not ready: {}", server.log());
        server
    }

    /// Has the database checked.
    pub(crate) fn check_database(&self) {
        let check = Command::new(env!("CARGO_BIN_EXE_nuncio"))
            .args(["db", "check"])
            .arg(self.folder.join("nuncio-data"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&check.stderr);
        assert!(check.status.success(), "{said}");
    }
}

/// A running server; killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    recipe: Recipe,
    child: Child,
    log: PathBuf,
}

impl Server {
    pub(crate) fn address(&self) -> SocketAddr {
        self.recipe.address
    }

    /// `kill -9`, and a new process at the same address with the same data.
    pub(crate) fn restart(&mut self) {
        self.kill();
        *self = self.recipe.start();
    }

    pub(crate) fn kill(&mut self) {
        // One that has ended by itself is dead too.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Stops it from working, without its knowing.
    pub(crate) fn freeze(&self) {
        self.signal("-STOP");
    }

    pub(crate) fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args([name, &self.child.id().to_string()])
            .status();
        assert!(kill.unwrap().success());
    }

    /// Sets how many files it may have open.
    pub(crate) fn limit_files(&self, most: u32) {
        let limited = Command::new("prlimit")
            .args(["--pid", &self.child.id().to_string()])
            .arg(format!("--nofile={most}:"))
            .status();
        assert!(limited.unwrap().success());
    }

    /// What it has said on stderr since its folder was made.
    pub(crate) fn log(&self) -> String {
        let mut text = String::new();
        let read = File::open(&self.log).and_then(|mut file| file.read_to_string(&mut text));
        read.map_or_else(|error| error.to_string(), |_| text)
    }

    /// Status and body with which a GET of `path` is answered; `None` if it is not.
    pub(crate) fn get(&self, path: &str) -> Option<(u16, String)> {
        get(self.address(), path)
    }

    /// Waits until it says that it is ready, or not.
    pub(crate) async fn comes_to_be_ready(&self, ready: bool) {
        for _ in 0..600 {
            let status = self.get("/readyz").map(|(status, _)| status);
            if (status == Some(200)) == ready {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("it is not {ready} that it is ready: {}", self.log());
    }
}

const PATIENCE: Duration = Duration::from_secs(5);

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Status and body with which a GET is answered; `None` if it is not.
pub(crate) fn get(server: SocketAddr, path: &str) -> Option<(u16, String)> {
    answer(server, &format!("GET {path}"), "")
}

/// Sends a text at this server itself, not to be waited for, and gives the reply.
pub(crate) fn send(server: SocketAddr, id: &str, text: &str) -> Option<(u16, Value)> {
    let body = json!({
        "message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": true},
    });
    let (status, reply) = answer(server, "POST /message:send", &body.to_string())?;
    Some((status, serde_json::from_str(&reply).unwrap()))
}

/// Sends one request of HTTP 1.0, so that the reply comes without chunks.
fn answer(server: SocketAddr, what: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = format!(
        "{what} HTTP/1.0\r\nhost: nuncio\r\na2a-version: 1.0\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).ok()?;
    let (head, body) = reply.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
