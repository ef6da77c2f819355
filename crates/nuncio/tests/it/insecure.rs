//! `--insecure`: only when asked for, and never silently.

use crate::fake::{Fake, finished};
use crate::support::{Said, nuncio, run};

fn send(fake: &Fake, more: &[&str]) -> Said {
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command.args(["send", "-a", &fake.url, "hello"]).args(more);
    run(command, "")
}

#[test]
fn certificates_are_checked_by_default() {
    let fake = Fake::behind_tls(finished);
    let said = send(&fake, &["-o", "json", "--bearer", "s3cret"]).exits(3);
    let error = said.json()["error"].clone();
    assert_eq!(error["code"], "A2ACLI_ERR_UNREACHABLE");
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(fake.requests().len(), 0, "nothing was sent");
}

#[test]
fn insecure_turns_the_check_off_and_warns() {
    let fake = Fake::behind_tls(finished);
    let said = send(&fake, &["--insecure", "-o", "json"]).exits(0);
    assert_eq!(
        said.json()["task"]["status"]["state"],
        "TASK_STATE_COMPLETED"
    );
    let off = "SECURITY: --insecure turns the check of TLS certificates off";
    assert!(said.err.contains(off), "{said:?}");
    assert!(!said.err.contains("credential"), "none was given: {said:?}");

    let said = send(&fake, &["--insecure", "--bearer", "s3cret"]).exits(0);
    let sent = format!("SECURITY: a credential is sent to {}", fake.url);
    assert!(
        said.err.contains(off) && said.err.contains(&sent),
        "{said:?}"
    );
    let last = fake.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer s3cret"));
}

#[test]
fn a_variable_that_turns_the_check_off_is_named() {
    let fake = Fake::behind_tls(finished);
    let folder = tempfile::tempdir().unwrap();
    let mut command = nuncio(folder.path());
    command
        .args(["send", "-a", &fake.url, "hello"])
        .env("A2ACLI_INSECURE", "true");
    let said = run(command, "").exits(0);
    assert!(
        said.err.contains("A2ACLI_INSECURE turns the check"),
        "{said:?}"
    );
}
