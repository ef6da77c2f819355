//! `nuncio demo`: the story of the damaged order, as it is told.

use crate::support::{nuncio, run};

/// Two services, two ports: the photo is asked for through both, the answer resumes both tasks, a
/// cancel stops both, and the call tree shows who called whom.
#[test]
fn the_demo_is_told_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.arg("demo");
    let said = run(command, "").exits(0);
    insta::with_settings!({filters => vec![(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT")]}, {
        insta::assert_snapshot!("demo", said.out);
    });
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "it leaves nothing behind");
}

/// Two settings name a real model; one alone is a mistake.
#[test]
fn a_model_has_a_provider_and_a_name() {
    let folder = tempfile::tempdir().unwrap();
    for (words, why) in [
        (&["--provider", "openai"][..], "--model"),
        (
            &["--provider", "nobody", "--model", "x"],
            "there is no provider \"nobody\"",
        ),
    ] {
        let mut command = nuncio(folder.path());
        command.arg("demo").args(words);
        let said = run(command, "").exits(2);
        assert!(said.err.contains(why), "{}", said.err);
    }
}
