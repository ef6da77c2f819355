//! Help, versions and completions.

use crate::support::{Said, nuncio, run};

fn said(arguments: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.args(arguments);
    run(command, "")
}

#[test]
fn help_is_as_it_was() {
    for words in [
        &[][..],
        &["serve"],
        &["send"],
        &["card", "get"],
        &["card", "sign"],
        &["card", "verify"],
        &["card", "lint"],
        &["card", "diff"],
        &["task", "get"],
        &["task", "list"],
        &["task", "cancel"],
        &["task", "subscribe"],
        &["task", "trace"],
        &["task", "rerun"],
        &["task", "export"],
        &["task", "import"],
        &["agents", "list"],
        &["agents", "get"],
        &["agents", "add"],
        &["agents", "remove"],
        &["push", "list"],
        &["push", "show"],
        &["push", "redeliver"],
        &["push", "recover"],
        &["push", "test"],
        &["push", "listen"],
        &["webhook", "verify"],
        &["doctor"],
        &["config", "show"],
        &["config", "check"],
        &["config", "dump"],
        &["db", "check"],
        &["db", "migrate"],
        &["db", "backup"],
        &["db", "restore"],
        &["upgrade", "check"],
        &["keys", "create"],
        &["completion"],
        &["version"],
    ] {
        let help = said(&[words, &["--help"]].concat()).exits(0);
        assert!(
            help.out.chars().all(|c| c == '\n' || !c.is_control()),
            "{words:?}"
        );
        let name = if words.is_empty() {
            "nuncio".to_owned()
        } else {
            words.join("_")
        };
        insta::assert_snapshot!(format!("help_{name}"), help.out);
    }
    assert_eq!(
        said(&["help", "send"]).exits(0).out,
        said(&["send", "--help"]).out
    );
}

#[test]
fn effective_defaults_stand_in_the_help_of_send() {
    let help = said(&["send", "--help"]).exits(0).out;
    for default in [
        "[default: text]",
        "[default: 2s]",
        "[default: no limit]",
        "[default: the card's order]",
        "[default: check]",
        "[default: concise]",
    ] {
        assert!(help.contains(default), "{default}\n{help}");
    }
    let flattened = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flattened.contains("other users of this machine can see it"),
        "{help}"
    );
}

#[test]
fn versions_are_told() {
    let version = env!("CARGO_PKG_VERSION");
    for flag in ["--version", "-v"] {
        assert_eq!(said(&[flag]).exits(0).out, format!("nuncio {version}\n"));
    }
    assert_eq!(said(&["version"]).exits(0).field("Version"), version);
    assert_eq!(
        said(&["version", "-o", "json"]).exits(0).json()["protocolVersions"],
        serde_json::json!(["0.3", "1.0"])
    );
}

#[test]
fn completions_exist_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = said(&["completion", shell]).exits(0).out;
        for word in ["subscribe", "agent-card", "completion"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    said(&["completion", "dos"]).exits(2);
}

#[test]
fn no_arguments_show_the_help() {
    let said = said(&[]).exits(2);
    assert!(said.err.contains("Examples:\n  nuncio serve\n"), "{said:?}");
}
