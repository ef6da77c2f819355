//! The documents of the repository: their commands run, their configurations are accepted, their
//! links lead somewhere.
//!
//! What a fenced block is taken for stands after its backticks:
//!
//! * `sh`: bash runs it, and fails at the first command that fails;
//! * `sh serve`: one command that serves; it runs until the next such block kills it;
//! * `sh norun: WHY`: it is not run;
//! * `text`, right after one of these: what was printed, `…` standing for anything in a line;
//! * `toml`, `toml file: NAME`: `nuncio config check` accepts it; kept for the commands under the name;
//! * `python`: run with the SDK that `scripts/interop` installs, in the test that is ignored.
//!
//! All blocks of a document share a folder that also holds `examples`. `nuncio` and
//! `cargo run --release --` are the binary under test, and 127.0.0.1:8080 is wherever the newest
//! `sh serve` block listens.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

const ADDRESS: &str = "127.0.0.1:8080";

/// Stands for `cargo`: there is nothing to build.
const CARGO: &str = r#"#!/bin/sh
case "$1 $2 $3" in
"run --release --") shift 3; exec nuncio "$@" ;;
*) echo "only 'cargo run --release --' is known here: $*" >&2; exit 64 ;;
esac
"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The documents that are checked, by their paths below the root.
fn documents() -> Vec<String> {
    let mut names = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ]
    .map(str::to_owned)
    .to_vec();
    for folder in ["changelog.d", "docs"] {
        let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
        let files = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let markdown = files.filter(|file| file.ends_with(".md"));
        names.extend(markdown.map(|file| format!("{folder}/{file}")));
    }
    names
}

/// A fenced block of a document.
struct Block {
    place: String,
    language: String,
    note: String,
    text: String,
    /// Whether nothing but blank lines is between it and the block before.
    follows: bool,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:\n{}", self.place, self.text)
    }
}

fn blocks(document: &str) -> Vec<Block> {
    let source = fs::read_to_string(root().join(document)).unwrap();
    let mut lines = source.lines().enumerate();
    let (mut blocks, mut follows) = (Vec::new(), false);
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            follows &= line.trim().is_empty();
            continue;
        };
        let (language, note) = info.split_once(' ').unwrap_or((info, ""));
        let text: Vec<&str> = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .collect();
        blocks.push(Block {
            place: format!("{document}:{}", number + 1),
            language: language.to_owned(),
            note: note.to_owned(),
            text: text.join("\n"),
            follows: std::mem::replace(&mut follows, true),
        });
    }
    blocks
}

/// Where the blocks of one document are played.
struct Stage {
    folder: TempDir,
    server: Option<(Child, String)>,
    /// What the block before has printed.
    printed: Option<String>,
    with_python: bool,
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Stage {
    fn new(with_python: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join(".bin");
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_nuncio"), bin.join("nuncio")).unwrap();
        fs::write(bin.join("cargo"), CARGO).unwrap();
        fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(root().join("examples"), folder.path().join("examples")).unwrap();
        Self {
            folder,
            server: None,
            printed: None,
            with_python,
        }
    }

    fn play(&mut self, block: &Block) {
        let printed = self.printed.take();
        match (block.language.as_str(), block.note.as_str()) {
            ("sh", "") => self.printed = Some(self.run(block, "/bin/bash", &["-euo", "pipefail"])),
            ("sh", "serve") => self.printed = Some(self.serve(block)),
            ("sh", note)
                if note
                    .strip_prefix("norun: ")
                    .is_some_and(|why| !why.is_empty()) => {}
            ("text", "") => {
                if let Some(printed) = printed.filter(|_| block.follows) {
                    assert_printed(block, &printed);
                }
            }
            ("toml", note) => self.check(block, note),
            ("python", "") if !self.with_python => {}
            ("python", "") => {
                let python = root().join("tests/interop/.venv/bin/python");
                self.printed = Some(self.run(block, python.to_str().unwrap(), &[]));
            }
            _ => panic!("a block of no known kind at {block}"),
        }
    }

    fn command(&self, program: &str) -> Command {
        let folder = self.folder.path();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", folder)
            .env("PATH", format!("{}/.bin:/usr/bin:/bin", folder.display()))
            .current_dir(folder)
            .stdin(Stdio::null());
        command
    }

    /// Runs a block to its good end and gives what it has printed.
    fn run(&self, block: &Block, program: &str, options: &[&str]) -> String {
        let address = match &self.server {
            Some((_, address)) => address,
            None if block.text.contains(ADDRESS) => panic!("nothing serves yet at {block}"),
            None => ADDRESS,
        };
        let script = block.text.replace(ADDRESS, address);
        let mut command = self.command(program);
        let done = command
            .args(options)
            .arg("-c")
            .arg(script)
            .output()
            .unwrap();
        let printed = String::from_utf8(done.stdout).unwrap();
        let complaints = String::from_utf8_lossy(&done.stderr);
        let status = done.status;
        assert!(status.success(), "{block}\n{status}\n{printed}{complaints}");
        printed.replace(address, ADDRESS)
    }

    /// Starts what a block serves, on a free port, and waits until it is ready.
    fn serve(&mut self, block: &Block) -> String {
        self.kill();
        let serves = !block.text.contains(['\n', '&', '|']) && block.text.contains(" serve");
        assert!(serves && !block.text.contains("--listen"), "{block}");
        let log = fs::File::create(self.folder.path().join("server.log")).unwrap();
        let mut command = self.command("/bin/bash");
        command.arg("-c");
        command.arg(format!("exec {} --listen 127.0.0.1:0", block.text));
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let (mut printed, mut address) = (String::new(), None);
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            printed = printed + &line + "\n";
            if let Some(url) = line.strip_prefix("ready http://") {
                address = Some(url.to_owned());
                break;
            }
        }
        let log = || fs::read_to_string(self.folder.path().join("server.log")).unwrap();
        let address = address.unwrap_or_else(|| panic!("not ready: {block}\n{}", log()));
        let printed = printed.replace(&address, ADDRESS);
        self.server = Some((child, address));
        printed
    }

    /// Ends the server as a power cut would: what a document says of it has to hold all the same.
    fn kill(&mut self) {
        if let Some((mut server, _)) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    fn check(&self, block: &Block, note: &str) {
        let name = match note.strip_prefix("file: ") {
            Some(name) => name,
            None if note.is_empty() => "block.toml",
            None => panic!("a block of no known kind at {block}"),
        };
        fs::write(self.folder.path().join(name), &block.text).unwrap();
        let mut command = self.command(env!("CARGO_BIN_EXE_nuncio"));
        let said = command.args(["config", "check", name]).output().unwrap();
        let complaints = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{block}\n{complaints}");
    }
}

fn assert_printed(block: &Block, printed: &str) {
    let (wanted, got) = (block.text.trim_end(), printed.trim_end());
    let same = wanted.lines().count() == got.lines().count()
        && wanted.lines().zip(got.lines()).all(|(w, g)| is_like(w, g));
    assert!(same, "other output than at {block}\ninstead:\n{got}");
}

/// Whether a line is as the pattern says; `…` stands for anything.
fn is_like(pattern: &str, line: &str) -> bool {
    let mut pieces = pattern.split('…');
    let Some(mut rest) = line.strip_prefix(pieces.next().unwrap_or_default()) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.is_empty()
}

fn play(with_python: bool) {
    for document in documents() {
        let mut stage = Stage::new(with_python);
        for block in blocks(&document) {
            stage.play(&block);
        }
    }
}

#[test]
fn blocks_do_what_the_documents_say() {
    play(false);
}

#[test]
#[ignore = "needs the Python SDK that scripts/interop installs"]
fn blocks_in_python_do_too() {
    play(true);
}

/// The text and the target of each link in a line.
fn links(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.match_indices("](").filter_map(|(at, _)| {
        let text = &line[line[..at].rfind('[')? + 1..at];
        let target = &line[at + 2..];
        Some((text, &target[..target.find(')')?]))
    })
}

/// A claim names its test by a link: the text is the function, the target its file.
fn is_test_name(text: &str) -> Option<&str> {
    let name = text.strip_prefix('`')?.strip_suffix('`')?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    (name.contains('_') && name.chars().all(fits)).then_some(name)
}

#[test]
fn links_lead_to_files_and_names_to_tests() {
    let mut wrong = Vec::new();
    for document in documents() {
        let source = fs::read_to_string(root().join(&document)).unwrap();
        let folder = root().join(&document).parent().unwrap().to_owned();
        for (number, line) in source.lines().enumerate() {
            for (text, target) in links(line) {
                let place = format!("{document}:{}: {target}", number + 1);
                if target.contains("://") || target.starts_with('#') {
                    continue;
                }
                let path = folder.join(target.split('#').next().unwrap_or_default());
                match (path.exists(), is_test_name(text)) {
                    (false, _) => wrong.push(format!("{place} is not there")),
                    (true, None) => {}
                    (true, Some(name)) => {
                        let code = fs::read_to_string(&path).unwrap_or_default();
                        if !code.contains(&format!("fn {name}(")) {
                            wrong.push(format!("{place} has no {name}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn crates_depend_as_the_table_says() {
    let source = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = source.lines().filter(|line| line.starts_with("| `nuncio"));
    let mut told = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        told.insert(name.to_owned());
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(manifest).unwrap().parse().unwrap();
        let used = manifest["dependencies"].as_table().unwrap().keys();
        let used: BTreeSet<&str> = used.filter_map(|k| k.strip_prefix("nuncio-")).collect();
        let allowed: BTreeSet<&str> = cells[3].split(", ").filter(|c| *c != "–").collect();
        assert!(cells[3] == "all" || used == allowed, "{name}: {used:?}");
    }
    let folders = fs::read_dir(root().join("crates")).unwrap();
    let there: BTreeSet<String> = folders
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(told, there);
}

/// What `scripts/interop` wrote into the README, by rows of cells.
fn matrix() -> Vec<Vec<String>> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, rest) = readme.split_once("<!-- interop:begin -->\n").unwrap();
    let (block, _) = rest.split_once("<!-- interop:end -->").unwrap();
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect();
    block
        .lines()
        .map(|row| cells(row.trim_matches('|')))
        .collect()
}

/// An SDK with the version that a file of `tests/interop` pins after `before`.
fn sdk(name: &str, file: &str, before: &str) -> String {
    let text = fs::read_to_string(root().join("tests/interop").join(file)).unwrap();
    let (_, rest) = text.split_once(before).unwrap();
    let version = rest.split(['"', '\n']).next().unwrap();
    format!("{name} {version}")
}

/// Only `scripts/interop` can say whether the numbers are true.
#[test]
fn the_matrix_is_of_the_pinned_sdks() {
    let python = |file| sdk("Python `a2a-sdk`", file, "a2a-sdk[grpc,http-server]==");
    let javascript = |file| sdk("JavaScript `@a2a-js/sdk`", file, "\"@a2a-js/sdk\": \"");
    let sdks = [
        python("python/requirements.txt"),
        javascript("js/package.json"),
        python("python/requirements_0_3.txt"),
        javascript("js_0_3/package.json"),
    ];
    let calls = sdks.iter().map(|sdk| format!("{sdk} calls nuncio"));
    let called = sdks.iter().map(|sdk| format!("nuncio calls {sdk}"));
    let passed = sdks
        .iter()
        .map(|sdk| format!("{sdk} passed through nuncio"));
    let behind = sdks.iter().map(|sdk| format!("{sdk} behind nuncio"));
    let wanted: Vec<String> = calls.chain(called).chain(passed).chain(behind).collect();
    let matrix = matrix();
    assert_eq!(matrix[0], ["Pair", "JSON-RPC", "HTTP+JSON", "gRPC"]);
    let told: Vec<&str> = matrix[2..].iter().map(|row| row[0].as_str()).collect();
    assert_eq!(told, wanted);
    let count = |text: &str| text.parse::<u32>().ok();
    for cell in matrix[2..].iter().flat_map(|row| &row[1..]) {
        let (passed, of) = cell.split_once('/').unwrap_or_default();
        let counts = count(passed).zip(count(of));
        assert!(
            cell == "–" || counts.is_some_and(|(passed, of)| passed <= of),
            "{cell}"
        );
    }
}

#[test]
fn changes_say_their_kind() {
    for file in documents() {
        let Some(name) = file
            .strip_prefix("changelog.d/")
            .filter(|n| *n != "README.md")
        else {
            continue;
        };
        let kind = name.split('.').nth(1).unwrap_or_default();
        let known = ["added", "changed", "fixed", "breaking"].contains(&kind);
        assert!(
            known && name.split('.').count() == 3,
            "{file}: TOPIC.KIND.md"
        );
    }
}
