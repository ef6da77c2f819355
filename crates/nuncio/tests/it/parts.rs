//! Large files: outside of the database, and nobody notices.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Said, Server, exchange, nuncio, run};

const SIZE: usize = 300_000;

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    found
}

fn database(folder: &Path, words: &[&str]) -> Said {
    let mut command = nuncio(folder);
    command.arg("db").args(words);
    run(command, "")
}

/// The raw content that the newest message of a task has, as base64.
fn raw(server: &Server, task: &str) -> String {
    let shown = server.run(&["task", "get"], &[task, "-o", "json"]).exits(0);
    let shown: Value = shown.json();
    let history = shown["history"].as_array().unwrap();
    let parts = history
        .iter()
        .flat_map(|message| message["parts"].as_array().unwrap());
    let raw = parts.filter_map(|part| part["raw"].as_str()).next();
    raw.unwrap().to_owned()
}

/// A photo of an order, sent and read back, over a restart, and from a backup.
#[test]
fn a_large_file_is_kept_beside_the_database() {
    let config = std::fs::read_to_string(crate::support::example("damaged-order")).unwrap();
    let server = Server::configured(&config);
    let photo = server.folder.path().join("photo.png");
    let bytes: Vec<u8> = (0..SIZE).map(|n| (n * 31 % 251) as u8).collect();
    std::fs::write(&photo, &bytes).unwrap();
    let asked = server.send(&["Order ORD-1042 arrived damaged"]).exits(0);
    let (task, context) = (asked.field("Task ID"), asked.field("Context ID"));
    let photo = photo.display().to_string();
    let answer = ["--context-id", &context, "--text", "see", "--file", &photo];
    server.send(&answer).exits(0);
    let content = raw(&server, &task);
    assert_eq!(content.len(), SIZE.div_ceil(3) * 4);

    let folder = server.crash();
    let data = folder.path().join("nuncio-data");
    let parts = files_below(&data.join("nuncio.db.parts"));
    let sizes = parts
        .iter()
        .map(|path| path.metadata().unwrap().len() as usize);
    assert_eq!(sizes.filter(|size| *size == SIZE).count(), 1, "{parts:?}");
    let server = Server::start_in(folder, &["--config", "nuncio.toml"]);
    assert_eq!(raw(&server, &task), content);
    let backup = server.folder.path().join("backup").join("nuncio.db");
    std::fs::create_dir(backup.parent().unwrap()).unwrap();
    database(
        server.folder.path(),
        &["backup", "nuncio-data", "backup/nuncio.db"],
    )
    .exits(0);
    let folder = server.crash();
    let restored = database(folder.path(), &["restore", "backup/nuncio.db", "new"]).exits(0);
    assert_eq!(restored.field("Tasks"), "1");
    let other = ["--config", "nuncio.toml", "--data", "new"];
    let server = Server::start_in(folder, &other);
    assert_eq!(raw(&server, &task), content);
}

/// `store.parts` says where, and 0 keeps all of them in the rows.
#[test]
fn parts_are_where_the_configuration_says() {
    let example = std::fs::read_to_string(crate::support::example("damaged-order")).unwrap();
    for (store, outside) in [
        ("parts = \"file:elsewhere\"", 1),
        ("parts_above_bytes = 0", 0),
    ] {
        let server = Server::configured(&format!("{example}\n[store]\n{store}\n"));
        let photo = server.folder.path().join("photo.png");
        std::fs::write(&photo, vec![7; SIZE]).unwrap();
        let sent = server
            .send(&["--file", &photo.display().to_string()])
            .exits(0);
        let content = raw(&server, &sent.field("Task ID"));
        assert_eq!(content.len(), SIZE.div_ceil(3) * 4);
        let kept = files_below(&server.folder.path().join("elsewhere"));
        let large = kept
            .iter()
            .filter(|path| path.metadata().unwrap().len() as usize == SIZE);
        assert_eq!(large.count(), outside, "{store}");
        assert!(
            !server
                .folder
                .path()
                .join("nuncio-data/nuncio.db.parts/0")
                .exists()
        );
    }
}

/// The bytes of a part as they are, whole or from where a download broke off; nobody gets another's.
#[test]
fn a_file_is_downloaded_as_it_is() {
    let keys = ["alice", "bob"].map(|caller| {
        use sha2::{Digest as _, Sha256};
        let digest = Sha256::digest(caller);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("[[auth.keys]]\nsha256 = \"{digest}\"\ncaller = \"{caller}\"\n")
    });
    let agent = "[[agents]]\nid = \"echo\"\nkind = \"echo\"\ninput_modes = [\"*/*\"]\n";
    let server = Server::configured(&(keys.concat() + agent));
    let ask = |key: &str, method: &str, path: &str, more: &[(&str, &str)], body: &str| {
        let mut headers = vec![("X-API-Key", key), ("Content-Type", "application/json")];
        headers.extend(more);
        exchange(
            &server.url,
            method,
            &format!("/agents/echo{path}"),
            &headers,
            body,
        )
    };
    let file = "ABC".repeat(SIZE / 3);
    let part = json!({"raw": "QUJD".repeat(SIZE / 3), "filename": "a \"b\".html", "mediaType": "text/html"});
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [part, {"url": "https://a.example/"}]});
    let sent = ask(
        "alice",
        "POST",
        "/message:send",
        &[],
        &json!({"message": message}).to_string(),
    );
    let id = sent.json()["task"]["id"].as_str().unwrap().to_owned();
    let path = format!("/tasks/{id}/messages/m1/parts/0");

    let whole = ask("alice", "GET", &path, &[], "");
    assert_eq!((whole.status, whole.body.as_str()), (200, file.as_str()));
    for (name, value) in [
        ("content-type", "text/html"),
        ("content-length", "300000"),
        (
            "content-disposition",
            "attachment; filename*=UTF-8''a%20%22b%22.html",
        ),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
    ] {
        assert_eq!(whole.header(name), Some(value), "{name}");
    }
    let rest = ask("alice", "GET", &path, &[("Range", "bytes=299998-")], "");
    assert_eq!((rest.status, rest.body.as_str()), (206, "BC"));
    assert_eq!(
        rest.header("content-range"),
        Some("bytes 299998-299999/300000")
    );
    let beyond = ask("alice", "GET", &path, &[("Range", "bytes=300000-")], "");
    assert_eq!(
        (beyond.status, beyond.header("content-range")),
        (416, Some("bytes */300000"))
    );
    let tag = whole.header("etag").unwrap();
    let known = ask("alice", "GET", &path, &[("If-None-Match", tag)], "");
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    let head = ask("alice", "HEAD", &path, &[], "");
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("300000"))
    );

    for (key, method, path, status) in [
        ("bob", "GET", path.clone(), 404),
        ("wrong", "GET", path.clone(), 401),
        ("alice", "POST", path.clone(), 405),
        (
            "alice",
            "GET",
            format!("/tasks/{id}/messages/m1/parts/1"),
            404,
        ),
        (
            "alice",
            "GET",
            format!("/tasks/{id}/messages/m1/parts/2"),
            404,
        ),
        (
            "alice",
            "GET",
            format!("/tasks/{id}/artifacts/m1/parts/0"),
            404,
        ),
        (
            "alice",
            "GET",
            "/tasks/unknown/messages/m1/parts/0".to_owned(),
            404,
        ),
    ] {
        let refused = ask(key, method, &path, &[], "");
        assert_eq!(refused.status, status, "{key} {method} {path}: {refused:?}");
    }
}
