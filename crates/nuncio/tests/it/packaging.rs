//! What is packaged with the binary: the unit for systemd.
#![cfg(unix)]

use std::process::Command;
use std::time::Duration;

use crate::support::{Process, nuncio};

const UNIT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../packaging/nuncio.service"
);

/// The values of a setting in a section of the unit.
fn values<'a>(unit: &'a str, section: &str, key: &str) -> Vec<&'a str> {
    let start = format!("[{section}]");
    let lines = unit.lines().skip_while(move |line| *line != start).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .filter(|(name, _)| *name == key)
        .map(|(_, value)| value)
        .collect()
}

fn seconds(unit: &str, key: &str) -> u64 {
    values(unit, "Service", key)[0].parse().unwrap()
}

/// R14, U07: systemd hears of readiness and life, and waits longer than the server takes to end.
#[test]
fn the_unit_fits_the_server() {
    let unit = std::fs::read_to_string(UNIT).unwrap();
    let one = |key| values(&unit, "Service", key)[..].to_vec();
    assert_eq!(one("Type"), ["notify"]);
    assert!(seconds(&unit, "WatchdogSec") >= 10);
    // Delay, runs, and the last answers: at most 5 + 10 + 10 seconds unless somebody sets more.
    assert!(seconds(&unit, "TimeoutStopSec") > 25);
    let command = one("ExecStart")[0];
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(words[..2], ["/usr/bin/nuncio", "serve"]);
    let state = format!("/var/lib/{}", one("StateDirectory")[0]);
    assert_eq!(words[words.len() - 2..], ["--data", state.as_str()]);
    let hardened = [
        "NoNewPrivileges",
        "DynamicUser",
        "PrivateDevices",
        "ProtectHome",
        "MemoryDenyWriteExecute",
    ];
    for key in hardened {
        assert_eq!(one(key), ["yes"], "{key}");
    }
}

/// U07: what systemd itself says about the unit, where it is installed.
#[test]
fn systemd_finds_the_unit_good_and_hardened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nuncio.service");
    let unit = std::fs::read_to_string(UNIT).unwrap();
    let unit = unit.replace("/usr/bin/nuncio", env!("CARGO_BIN_EXE_nuncio"));
    std::fs::write(&path, unit).unwrap();
    let analyze = |words: &[&str]| {
        let output = Command::new("systemd-analyze")
            .args(words)
            .arg(&path)
            .output();
        output.ok().map(|output| {
            let text = [output.stdout, output.stderr].concat();
            (
                output.status.success(),
                String::from_utf8_lossy(&text).into_owned(),
            )
        })
    };
    let Some((good, said)) = analyze(&["verify", "--man=no"]) else {
        eprintln!("systemd-analyze is not installed");
        return;
    };
    assert!(good && !said.contains("nuncio.service:"), "{said}");
    let Some((good, said)) = analyze(&["security", "--offline=true", "--threshold=25"]) else {
        return;
    };
    assert!(good, "its exposure is above 2.5: {said}");
}

/// What a supervisor hears of a server from its start to its end (R14).
#[test]
fn a_supervisor_is_told_ready_alive_and_stopping() {
    use std::os::unix::net::UnixDatagram;
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("notify");
    let listener = UnixDatagram::bind(&socket).unwrap();
    listener
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let next = || {
        let mut word = [0; 256];
        let length = listener.recv(&mut word).expect("a word in time");
        String::from_utf8_lossy(&word[..length]).trim().to_owned()
    };
    let mut command = nuncio(folder.path());
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "100000");
    let mut child = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::null()));
    assert_eq!(next(), "READY=1");
    for _ in 0..5 {
        assert_eq!(next(), "WATCHDOG=1");
    }
    crate::support::signal(child.id(), "TERM");
    let mut word = next();
    while word == "WATCHDOG=1" {
        word = next();
    }
    assert_eq!(word, "STOPPING=1");
    assert_eq!(crate::support::wait(&mut child, Duration::from_secs(20)), 0);
}
