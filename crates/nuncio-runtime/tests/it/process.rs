//! Programs in Python as agents. They are real ones, and so time passes by itself here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use nuncio_engine::{AgentInfo, Settings};
use nuncio_protocol::{StreamResponse, Task, TaskState};
use nuncio_runtime::{ProcessAgent, ProcessMode, ProcessSettings};
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::support::{Hosted, said, texts};

/// What every program here begins with.
const PRELUDE: &str = "
import json, os, signal, subprocess, sys, time
told = json.loads(sys.stdin.readline())
task = told['task']
def say(type, **rest): print(json.dumps(dict(rest, type=type, task=task)), flush=True)
";

fn settings(command: &[&str]) -> ProcessSettings {
    let mut settings = ProcessSettings::new(command.iter().map(|&word| word.into()).collect());
    settings.inherited = ["PATH", "HOME"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), std::env::var_os(name)?.into_string().ok()?)))
        .collect();
    settings.notice = Duration::from_millis(300);
    settings.grace = Duration::from_millis(300);
    settings
}

fn python(code: &str) -> ProcessSettings {
    settings(&["python3", "-c", &format!("{PRELUDE}{code}")])
}

fn example() -> ProcessSettings {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/process-agent/agent.py"
    );
    settings(&["python3", path])
}

fn hosted(settings: ProcessSettings) -> Hosted {
    let info = AgentInfo::new("p", "P", "a program");
    Hosted::new(Arc::new(ProcessAgent::new(info, settings)))
}

async fn failure_of(settings: ProcessSettings) -> String {
    let task = hosted(settings).task("x").await;
    assert_eq!(task.status.state, TaskState::Failed, "{task:?}");
    said(&task)
}

/// The process ids that a task names in its artifacts.
fn pids(task: &Task) -> Vec<Pid> {
    let ids = texts(task).concat();
    let ids = ids.split_whitespace().map(|id| id.parse().unwrap());
    ids.map(|id| Pid::from_raw(id).unwrap()).collect()
}

/// Waits until a process is neither alive nor a zombie.
async fn gone(pid: Pid) {
    for _ in 0..1_000 {
        if test_kill_process(pid).is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pid:?} is still there");
}

/// Waits until a task has artifacts.
async fn with_artifacts(hosted: &Hosted, task: &Task) -> Task {
    loop {
        let now = hosted.get(&task.id).await;
        if !now.artifacts.is_empty() {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn the_example_streams_asks_and_goes_on() {
    for mode in [ProcessMode::PerTask, ProcessMode::Persistent] {
        let mut settings = example();
        settings.mode = mode;
        let hosted = hosted(settings);
        let pieces: Vec<_> = hosted
            .events("abc de")
            .await
            .iter()
            .filter_map(|event| match event {
                StreamResponse::ArtifactUpdate(u) => Some((u.artifact.text(), u.append)),
                _ => None,
            })
            .collect();
        assert_eq!(
            pieces,
            [("cba ".to_owned(), false), ("ed ".to_owned(), true)]
        );
        let waiting = hosted.task(" ").await;
        assert_eq!(waiting.status.state, TaskState::InputRequired);
        assert_eq!(said(&waiting), "Which words?");
        let done = hosted.answer(&waiting.id, "xyz").await;
        assert_eq!(done.status.state, TaskState::Completed);
        assert_eq!(
            (texts(&done), said(&done).as_str()),
            (vec!["zyx ".to_owned()], "1 words turned around")
        );
    }
}

#[tokio::test]
async fn a_program_is_told_what_there_is_to_know() {
    let code = "
say('checkpoint', value={'n': told['turn']})
say('artifact', artifact={'artifactId': 'told-%d' % told['turn'], 'parts': [{'data': told}]})
say('ask', text='more?') if told['turn'] == 1 else say('done')
";
    let hosted = hosted(python(code));
    let first = hosted.task("one").await;
    let done = hosted.answer(&first.id, "two").await;
    assert_eq!(done.status.state, TaskState::Completed, "{}", said(&done));
    let told = |index: usize| match &done.artifacts[index].parts[0].content {
        nuncio_protocol::PartContent::Data(told) => told.clone(),
        other => panic!("{other:?}"),
    };
    let (first, second) = (told(0), told(1));
    assert_eq!(first["version"], 1);
    assert_eq!(first["task"], json!(done.id));
    assert_eq!(first["context"], json!(done.context_id));
    assert_eq!(
        first["caller"],
        json!({"id": "client", "workspace": "default"})
    );
    assert_eq!((&first["turn"], &first["attempt"]), (&json!(1), &json!(1)));
    assert_eq!(first["message"]["parts"], json!([{"text": "one"}]));
    assert_eq!(first["message"]["role"], "ROLE_USER");
    assert_eq!(
        (&first["history"], &first["checkpoint"]),
        (&json!([]), &Value::Null)
    );
    assert_eq!(second["turn"], 2);
    assert_eq!(second["checkpoint"], json!({"n": 1}));
    let history: Vec<_> = second["history"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["parts"][0]["text"])
        .collect();
    assert_eq!(history, ["one", "more?"]);
}

#[tokio::test]
async fn every_end_is_possible() {
    for (code, state, text) in [
        ("say('done', text='d')", TaskState::Completed, "d"),
        ("say('reject', reason='r')", TaskState::Rejected, "r"),
        ("say('fail', message='f')", TaskState::Failed, "f"),
        (
            "say('auth', text='a', scheme='Bearer')",
            TaskState::AuthRequired,
            "a",
        ),
    ] {
        let task = hosted(python(code)).task("x").await;
        assert_eq!((task.status.state, said(&task).as_str()), (state, text));
    }
}

#[tokio::test]
async fn a_program_gets_no_variables_but_those_named() {
    let mut settings = python("say('text', delta=' '.join(sorted(os.environ))); say('done')");
    settings.env = [("TOKEN".to_owned(), "secret".to_owned())].into();
    let task = hosted(settings).task("x").await;
    let names = texts(&task).concat();
    let names: Vec<_> = names.split(' ').collect();
    for named in ["HOME", "PATH", "TOKEN"] {
        assert!(names.contains(&named), "{names:?}");
    }
    // The test itself has many of these.
    assert!(std::env::vars_os().any(|(name, _)| name == "CARGO_MANIFEST_DIR"));
    let ours = names.iter().filter(|name| name.starts_with("CARGO"));
    assert_eq!(ours.count(), 0, "{names:?}");
}

#[tokio::test]
async fn a_crash_is_told_with_its_last_words_and_without_secrets() {
    let mut settings = python(
        "
for n in range(30): print('line', n, os.environ['TOKEN'], file=sys.stderr)
say('text', delta='half')
sys.exit(3)
",
    );
    settings.env = [("TOKEN".to_owned(), "hush-hush".to_owned())].into();
    let task = hosted(settings).task("x").await;
    assert_eq!(task.status.state, TaskState::Failed);
    let told = said(&task);
    let expected = "the agent's program ended before its task did (exit status: 3); its last words:\nline 10 ***\n";
    assert!(told.starts_with(expected), "{told}");
    assert!(told.ends_with("\nline 29 ***"), "{told}");
    assert_eq!(texts(&task), ["half"], "what was said before stays");
}

#[tokio::test]
async fn br_056_what_is_no_event_fails_the_task_and_names_its_line() {
    for (code, why) in [
        (
            "print('working…')",
            "line 1 of the agent's program is no JSON object: ",
        ),
        (
            "print(); say('dance')",
            "line 2 of the agent's program is no event: unknown variant `dance`",
        ),
        (
            "say('status', text='s', colour='red')",
            "is no event: unknown field `colour`",
        ),
        (
            "say('text'); say('done')",
            "line 1 of the agent's program is no event: missing field `delta`",
        ),
        (
            "say('artifact', artifact={'artifactId': 'a', 'parts': [{'text': 'x'}]}, append=True); say('done')",
            "line 1 of the agent's program is refused: artifact a is appended to, but does not exist",
        ),
        (
            "task = 'other'; say('done')",
            "line 1 of the agent's program is about another task",
        ),
        ("pass", "ended before its task did (exit status: 0)"),
        (
            "os.close(1); time.sleep(600)",
            "ended before its task did (signal: 15 (SIGTERM))",
        ),
    ] {
        let told = failure_of(python(code)).await;
        assert!(told.contains(why), "{code}: {told}");
    }
}

#[tokio::test]
async fn a_line_may_be_long_but_not_longer_than_the_limit() {
    let code = "say('text', delta='x' * 300_000); say('done')";
    let task = hosted(python(code)).task("x").await;
    assert_eq!(texts(&task)[0].len(), 300_000);
    let mut settings = python(code);
    settings.max_line_bytes = 100_000;
    let told = failure_of(settings).await;
    assert_eq!(
        told,
        "line 1 of the agent's program is longer than 100000 bytes"
    );
}

#[tokio::test]
async fn a_program_that_reads_nothing_blocks_nobody() {
    let big = "x".repeat(1 << 20);
    let code = "
import os
os.write(1, (b'{\"type\":\"text\",\"delta\":\"' + b'y' * 1000000 + b'\"}\\n') * 3)
os.write(1, b'{\"type\":\"done\"}\\n')
";
    let task = hosted(settings(&["python3", "-c", code])).task(&big).await;
    assert_eq!(task.status.state, TaskState::Completed, "{}", said(&task));
    assert_eq!(texts(&task)[0].len(), 3_000_000);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_fails_the_task() {
    let told = failure_of(settings(&["/no/such/program"])).await;
    assert!(
        told.starts_with("failed to start the agent's program: "),
        "{told}"
    );
}

#[tokio::test]
async fn a_program_that_obeys_a_cancel_may_finish_its_words() {
    let code = "
say('status', text='ready')
assert json.loads(sys.stdin.readline()) == {'type': 'cancel'}
say('text', delta='kept')
say('done')
";
    let hosted = hosted(python(code));
    let task = hosted.begin_and_hear("x", "ready").await;
    let canceled = hosted.cancel(&task.id).await;
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(texts(&canceled), ["kept"]);
}

#[tokio::test]
async fn a_program_that_ignores_a_cancel_is_killed_with_all_it_started() {
    let code = "
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(['sleep', '600'])
say('text', delta='%d %d' % (os.getpid(), child.pid))
while True: time.sleep(1)
";
    let hosted = hosted(python(code));
    let task = hosted.begin("x").await;
    let task = with_artifacts(&hosted, &task).await;
    let pids = pids(&task);
    assert_eq!(pids.len(), 2);
    let canceled = hosted.cancel(&task.id).await;
    assert_eq!(canceled.status.state, TaskState::Canceled);
    for pid in pids {
        gone(pid).await;
    }
}

/// What a program leaves behind when it ends well does not stay either.
#[tokio::test]
async fn what_a_program_has_started_ends_with_it() {
    let code = "
child = subprocess.Popen(['sleep', '600'])
say('text', delta='%d %d' % (os.getpid(), child.pid))
say('done')
";
    let task = hosted(python(code)).task("x").await;
    assert_eq!(task.status.state, TaskState::Completed);
    for pid in pids(&task) {
        gone(pid).await;
    }
}

#[tokio::test]
async fn br_079_a_program_that_hangs_is_ended_at_the_deadline() {
    let code = "
say('text', delta=str(os.getpid()))
time.sleep(600)
";
    let mut limits = Settings::default();
    limits.run_deadline = Duration::from_secs(2);
    let info = AgentInfo::new("p", "P", "a program");
    let agent = Arc::new(ProcessAgent::new(info, python(code)));
    let hosted = Hosted::with_settings(agent, limits);
    let task = hosted.task("x").await;
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!(said(&task), "the agent did not finish within 2 seconds");
    gone(pids(&task)[0]).await;
}

#[tokio::test]
async fn no_program_outlives_its_engine() {
    let code = "
say('text', delta=str(os.getpid()))
time.sleep(600)
";
    let hosted = hosted(python(code));
    let task = hosted.begin("x").await;
    let task = with_artifacts(&hosted, &task).await;
    hosted.engine.stop_runs(Duration::ZERO).await.unwrap();
    gone(pids(&task)[0]).await;
}

/// A program that serves many runs, and what it does by their text.
const KEPT: &str = "
import json, os, sys, time
for line in sys.stdin:
    told = json.loads(line)
    if told['type'] == 'cancel': continue
    text = told['message']['parts'][0]['text']
    def say(type, **rest): print(json.dumps(dict(rest, type=type, task=told['task'])), flush=True)
    if text == 'die': sys.exit(7)
    if text == 'wait':
        say('status', text='ready')
        assert json.loads(sys.stdin.readline())['type'] == 'cancel'
    if text == 'fail': say('fail', message='as asked'); continue
    if text == 'nameless': print('{\"type\":\"done\"}', flush=True); continue
    say('text', delta=str(os.getpid()))
    say('done')
";

fn kept() -> Hosted {
    let mut settings = settings(&["python3", "-c", KEPT]);
    settings.mode = ProcessMode::Persistent;
    hosted(settings)
}

#[tokio::test]
async fn a_kept_program_serves_many_runs_one_after_another() {
    let hosted = kept();
    let (a, b) = tokio::join!(hosted.task("a"), hosted.task("b"));
    assert_eq!(pids(&a), pids(&b));
    let failed = hosted.task("fail").await;
    assert_eq!(said(&failed), "as asked");
    let waiting = hosted.begin_and_hear("wait", "ready").await;
    hosted.cancel(&waiting.id).await;
    assert_eq!(pids(&hosted.task("c").await), pids(&a));
}

#[tokio::test]
async fn a_kept_program_that_dies_is_started_again() {
    let hosted = kept();
    let before = pids(&hosted.task("a").await);
    let died = said(&hosted.task("die").await);
    assert!(died.contains("(exit status: 7)"), "{died}");
    let after = pids(&hosted.task("b").await);
    assert_ne!(before, after);
    gone(before[0]).await;
}

/// What comes late must not get into the task of somebody else.
#[tokio::test]
async fn a_kept_program_must_name_the_task_of_each_event() {
    let hosted = kept();
    let before = pids(&hosted.task("a").await);
    let told = said(&hosted.task("nameless").await);
    assert_eq!(told, "line 1 of the agent's program has no `task`");
    gone(before[0]).await;
    assert_eq!(
        hosted.task("b").await.status.state,
        TaskState::Completed,
        "it is started again"
    );
}

/// A program that says more than it should does not say it in the task of somebody else.
#[tokio::test]
async fn what_a_kept_program_says_too_late_fails_the_next_task() {
    let code = "
import json, sys, time
told = json.loads(sys.stdin.readline())
for _ in range(100): print(json.dumps({'type': 'done', 'task': told['task']}), flush=True)
time.sleep(600)
";
    let mut settings = settings(&["python3", "-c", code]);
    settings.mode = ProcessMode::Persistent;
    let hosted = hosted(settings);
    let first = hosted.task("x").await;
    assert_eq!(first.status.state, TaskState::Completed);
    let told = said(&hosted.task("y").await);
    assert_eq!(told, "line 1 of the agent's program is about another task");
    let third = hosted.task("z").await;
    assert_eq!(third.status.state, TaskState::Completed, "{}", said(&third));
}

#[tokio::test]
async fn no_more_programs_run_at_once_than_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = python(
        "
mine = os.path.join(os.environ['SHARED'], str(os.getpid()))
open(mine, 'w').close()
say('text', delta=str(len(os.listdir(os.environ['SHARED']))))
time.sleep(0.1)
os.remove(mine)
say('done')
",
    );
    let shared = folder.path().to_str().unwrap().to_owned();
    settings.env = BTreeMap::from([("SHARED".to_owned(), shared)]);
    settings.max_processes = 2;
    let hosted = hosted(settings);
    let tasks = futures_util::future::join_all((0..6).map(|_| hosted.task("x"))).await;
    let counts: Vec<usize> = tasks
        .iter()
        .map(|task| texts(task)[0].parse().unwrap())
        .collect();
    assert!(
        counts.iter().all(|count| (1..=2).contains(count)),
        "{counts:?}"
    );
}
