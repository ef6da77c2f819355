//! Several writers at once, on real threads.

use nuncio_protocol::TaskState;
use nuncio_store::{Appended, Created};

use super::Shared;
use crate::draft::{Draft, key, scope};

const ROUNDS: usize = 1_000;

pub(crate) async fn one_of_two_appends_wins(store: &Shared) {
    let mut draft = Draft::new("ada", "t", 0);
    store.create(draft.create()).await.unwrap();
    for round in 0..ROUNDS {
        let append = draft.artifact("a", &round.to_string()).append();
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let (store, append) = (store.clone(), append.clone());
                tokio::spawn(async move { store.append(append).await.unwrap() })
            })
            .collect();
        let mut won = 0;
        for writer in writers {
            match writer.await.unwrap() {
                Appended::Done { .. } => won += 1,
                Appended::Conflict(head) => assert_eq!(head.last, append.after + 1),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(won, 1, "round {round}");
    }
    let stored = store
        .load(&draft.scope, &draft.id())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(*stored.task, draft.task);
}

pub(crate) async fn one_of_many_creates_is_new(store: &Shared) {
    for round in 0..100 {
        let writers: Vec<_> = (0..8)
            .map(|n| {
                let mut new = Draft::new("ada", &format!("{round} {n}"), 0).create();
                new.idempotency = Some(key(&format!("key {round}"), 1));
                let store = store.clone();
                tokio::spawn(async move { store.create(new).await.unwrap() })
            })
            .collect();
        let mut new = 0;
        for writer in writers {
            match writer.await.unwrap() {
                Created::New => new += 1,
                Created::Existing { same_request, .. } => assert!(same_request),
            }
        }
        assert_eq!(new, 1, "round {round}");
    }
    let page = store
        .list(&scope("ada"), &Default::default(), None, 1)
        .await;
    assert_eq!(page.unwrap().total, 100);
}

pub(crate) async fn cancel_against_completion(store: &Shared) {
    for round in 0..200 {
        let id = format!("t{round}");
        store
            .create(Draft::new("ada", &id, 0).create())
            .await
            .unwrap();
        let ends = [TaskState::Canceled, TaskState::Completed].map(|state| {
            let mut draft = Draft::new("ada", &id, 0);
            draft.create();
            (state, draft.status(state, 1).append())
        });
        let writers = ends.map(|(state, append)| {
            let store = store.clone();
            tokio::spawn(async move { (state, store.append(append).await.unwrap()) })
        });
        let mut winners = Vec::new();
        for writer in writers {
            let (state, reply) = writer.await.unwrap();
            if let Appended::Done { .. } = reply {
                winners.push(state);
            }
        }
        let stored = store
            .load(&scope("ada"), &id.into())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(winners, [stored.task.status.state]);
        assert_eq!(stored.head.last, 2);
    }
}
