//! Whatever the events, however they are cut into commits: snapshot plus tail is the full fold.

use std::sync::Arc;

use nuncio_protocol::{Artifact, Event, Part, StreamResponse, Task, TaskArtifactUpdateEvent};
use nuncio_protocol::{TaskState, TaskStatus, TaskStatusUpdateEvent};
use nuncio_store::{
    Appended, Created, MemoryStore, SqliteOptions, SqliteStore, Store, Synchronous, check,
};
use proptest::prelude::{Strategy, any, prop};
use proptest::{prop_assert_eq, proptest};

use crate::draft::{Draft, at};

/// What one step adds, and whether a commit and a snapshot follow.
#[derive(Clone, Debug)]
struct Step {
    event: Told,
    commit: bool,
    snapshot: bool,
}

#[derive(Clone, Debug)]
enum Told {
    Status(TaskState, bool),
    Message(String),
    Artifact(u8, bool, String, f64),
    Whole,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let state = prop::sample::select(vec![
        TaskState::Working,
        TaskState::InputRequired,
        TaskState::AuthRequired,
        TaskState::Completed,
    ]);
    let number = prop::num::f64::NORMAL;
    let event = proptest::prop_oneof![
        3 => (state, any::<bool>()).prop_map(|(state, speaks)| Told::Status(state, speaks)),
        2 => ".{0,12}".prop_map(Told::Message),
        6 => (0..3_u8, any::<bool>(), ".{0,12}", number)
            .prop_map(|(id, append, text, number)| Told::Artifact(id, append, text, number)),
        1 => proptest::strategy::Just(Told::Whole),
    ];
    let step = (event, any::<bool>(), any::<bool>()).prop_map(|(event, commit, snapshot)| Step {
        event,
        commit,
        snapshot,
    });
    prop::collection::vec(step, 0..24)
}

/// Tells the event, unless the rules forbid it.
fn tell(draft: &mut Draft, event: &Told, ms: i64) {
    if draft.task.status.state.is_terminal() {
        return;
    }
    match event {
        Told::Status(state, true) => {
            draft.status(*state, ms);
        }
        Told::Status(state, false) => {
            draft.status_time = at(ms);
            let status = TaskStatus::new(*state, at(ms));
            let update = TaskStatusUpdateEvent::new(draft.id(), draft.context(), status);
            draft.tell(StreamResponse::StatusUpdate(update));
        }
        Told::Message(text) => {
            draft.message(text);
        }
        Told::Artifact(id, append, text, number) => {
            let id = format!("artifact {id}");
            let known = |of: &Artifact| of.artifact_id.as_str() == id;
            let append = *append && draft.task.artifacts.iter().any(known);
            let mut piece = Artifact::new(id.as_str(), vec![Part::text(text), Part::data(*number)]);
            piece
                .metadata
                .get_or_insert_default()
                .insert(text.clone(), (*number).into());
            let mut update = TaskArtifactUpdateEvent::new(draft.id(), draft.context(), piece);
            update.append = append;
            draft.tell(StreamResponse::ArtifactUpdate(update));
        }
        Told::Whole => {
            let whole = draft.task.clone();
            draft.tell(StreamResponse::Task(whole));
        }
    }
}

/// Writes the steps and compares after each commit.
async fn write(store: &dyn Store, id: &str, steps: &[Step]) -> Result<(), String> {
    let mut draft = Draft::new("ada", id, 0);
    let mut created = false;
    for (n, step) in steps.iter().enumerate() {
        tell(&mut draft, &step.event, n as i64 + 1);
        if step.commit || n + 1 == steps.len() {
            commit(store, &mut draft, &mut created, step.snapshot).await;
            compare(store, &draft).await?;
        }
    }
    Ok(())
}

async fn commit(store: &dyn Store, draft: &mut Draft, created: &mut bool, snapshot: bool) {
    if std::mem::replace(created, true) {
        if draft.stored == draft.log.len() {
            return;
        }
        let mut append = draft.append();
        append.snapshot = snapshot.then(|| Arc::new(draft.task.clone()));
        let done = store.append(append).await.unwrap();
        assert!(matches!(done, Appended::Done { .. }), "{done:?}");
    } else {
        let mut new = draft.create();
        new.snapshot = snapshot;
        assert_eq!(store.create(new).await.unwrap(), Created::New);
    }
}

async fn compare(store: &dyn Store, draft: &Draft) -> Result<(), String> {
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    if *stored.task != draft.task {
        return Err(format!(
            "loaded {:?}\nexpected {:?}",
            stored.task, draft.task
        ));
    }
    let events = store.events(&draft.scope, &draft.id(), 0, usize::MAX).await;
    let events = events.unwrap();
    let folded = fold(&events);
    if folded != draft.task || events.len() as u64 != stored.head.last {
        return Err(format!("folded {folded:?}\nexpected {:?}", draft.task));
    }
    Ok(())
}

fn fold(events: &[Event]) -> Task {
    let StreamResponse::Task(first) = events[0].response() else {
        panic!("position 1 is the task");
    };
    let mut task = first.clone();
    for event in &events[1..] {
        task.apply(event.response()).unwrap();
    }
    task
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #[test]
    fn memory_folds_as_the_reducer(steps in steps()) {
        let store = MemoryStore::default();
        prop_assert_eq!(block_on(write(&store, "t", &steps)), Ok(()));
    }

    #[test]
    fn sqlite_folds_as_the_reducer(tasks in prop::collection::vec(steps(), 1..8)) {
        let folder = tempfile::TempDir::new().unwrap();
        let options = SqliteOptions { synchronous: Synchronous::Normal, ..SqliteOptions::default() };
        let path = folder.path().join("nuncio.db");
        let store = SqliteStore::open(&path, options).unwrap();
        for (n, steps) in tasks.iter().enumerate() {
            prop_assert_eq!(block_on(write(&store, &format!("t{n}"), steps)), Ok(()));
        }
        block_on(store.close()).unwrap();
        prop_assert_eq!(check(&path).unwrap().problems, Vec::<String>::new());
    }
}
