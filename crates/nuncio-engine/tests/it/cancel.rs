//! Cancel: one winner, the agent told, nothing after the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_engine::Settings;
use nuncio_protocol::{
    A2aError, AgentService as _, CancelTaskRequest, ErrorKind, StreamResponse, Task, TaskId,
    TaskState,
};
use nuncio_testkit::{Bed, Behaviour, TestAgent, call, send, text_message};

async fn cancel(bed: &Bed, id: &TaskId) -> Result<Task, A2aError> {
    bed.agent
        .cancel_task(call("alice"), CancelTaskRequest::new(id.clone()))
        .await
}

/// OP-CANC-01, BR-072: the agent is told once, and the answer shows it.
#[tokio::test(start_paused = true)]
async fn br_072_a_cancel_reaches_the_agent() {
    let bed = Bed::new(Behaviour::Slow(60));
    let task = bed.start("m1", "go").await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let begin = tokio::time::Instant::now();
    let canceled = cancel(&bed, &task.id).await.unwrap();
    assert!(begin.elapsed() < Duration::from_millis(100), "BR-070");
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert_eq!(bed.trace.cancels.load(Ordering::SeqCst), 1);
    assert_eq!(
        bed.trace.active.load(Ordering::SeqCst),
        0,
        "nothing goes on"
    );
    assert_eq!(bed.task(&task.id).await, canceled);
}

/// BR-069, OP-CANC-05: deaf agents and parked tasks are canceled too.
#[tokio::test(start_paused = true)]
async fn br_069_deaf_agents_and_parked_tasks_are_canceled() {
    let deaf = Bed::new(Behaviour::Deaf);
    let task = deaf.start("m1", "go").await;
    assert_eq!(
        cancel(&deaf, &task.id).await.unwrap().status.state,
        TaskState::Canceled
    );
    assert_eq!(deaf.trace.active.load(Ordering::SeqCst), 0);
    for behaviour in [Behaviour::Ask(1), Behaviour::Auth] {
        let parked = Bed::new(behaviour);
        let task = parked.ask("m1", "go").await;
        assert_eq!(
            cancel(&parked, &task.id).await.unwrap().status.state,
            TaskState::Canceled
        );
        assert_eq!(
            parked.task(&task.id).await.status.state,
            TaskState::Canceled
        );
    }
}

/// P2, OP-CANC-02..04.
#[tokio::test]
async fn what_cannot_be_canceled_says_so() {
    let bed = Bed::new(Behaviour::Ask(1));
    let parked = bed.ask("m1", "go").await;
    let first = cancel(&bed, &parked.id).await.unwrap();
    assert_eq!(
        cancel(&bed, &parked.id).await.unwrap(),
        first,
        "a second cancel gives the task"
    );
    for behaviour in [Behaviour::Echo, Behaviour::Silent, Behaviour::Reject] {
        let bed = Bed::new(behaviour);
        let task = bed.ask("m1", "go").await;
        let error = cancel(&bed, &task.id).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::TaskNotCancelable);
        assert_eq!(bed.task(&task.id).await, task);
    }
    assert_eq!(
        cancel(&bed, &"nope".into()).await.unwrap_err().kind,
        ErrorKind::TaskNotFound
    );
    let mut settings = Settings::default();
    settings.refuse_second_cancel = true;
    let strict = Bed::with(TestAgent::new(Behaviour::Ask(1)), settings);
    let task = strict.ask("m1", "go").await;
    cancel(&strict, &task.id).await.unwrap();
    assert_eq!(
        cancel(&strict, &task.id).await.unwrap_err().kind,
        ErrorKind::TaskNotCancelable
    );
}

/// OP-CANC-08: the request's additions reach the agent.
#[tokio::test(start_paused = true)]
async fn a_cancels_blocking_sender_gets_the_canceled_task() {
    let bed = Arc::new(Bed::new(Behaviour::Hold));
    let task = bed.start("m1", "go").await;
    let waiting = {
        let bed = Arc::clone(&bed);
        tokio::spawn(async move { bed.ask("m1", "go").await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    cancel(&bed, &task.id).await.unwrap();
    assert_eq!(waiting.await.unwrap().status.state, TaskState::Canceled);
}

/// R24, BR-070, BR-071: cancel against completion against a new message, on real threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_070_cancel_completion_and_message_have_one_winner() {
    let (mut canceled, mut completed) = (0, 0);
    for round in 0..10_000_u64 {
        let behaviour = if round % 2 == 0 {
            Behaviour::Status(Duration::ZERO)
        } else {
            Behaviour::Flood(round % 50)
        };
        let bed = Arc::new(Bed::new(behaviour));
        let task = bed.start("m1", "go").await;
        let canceling = {
            let (bed, id) = (Arc::clone(&bed), task.id.clone());
            tokio::spawn(async move {
                for _ in 0..round % 97 {
                    std::hint::spin_loop();
                }
                cancel(&bed, &id).await
            })
        };
        let sending = {
            let (bed, id) = (Arc::clone(&bed), task.id.clone());
            tokio::spawn(async move {
                let mut message = text_message("m2", "more");
                message.task_id = Some(id);
                bed.agent.send_message(call("alice"), send(message)).await
            })
        };
        let cancel = canceling.await.unwrap();
        let sent = sending.await.unwrap();
        let end = bed.task(&task.id).await;
        match (&cancel, end.status.state) {
            (Ok(task), TaskState::Canceled) => {
                assert_eq!(task.status.state, TaskState::Canceled);
                canceled += 1;
            }
            (Err(error), TaskState::Completed) => {
                assert_eq!(error.kind, ErrorKind::TaskNotCancelable);
                completed += 1;
            }
            other => panic!("round {round}: {other:?}"),
        }
        if let Err(error) = sent {
            assert_eq!(error.kind, ErrorKind::UnsupportedOperation, "round {round}");
        }
        let events = bed
            .store
            .events(&bed.scope("alice"), &task.id, 0, 10_000)
            .await
            .unwrap();
        let ends = events
            .iter()
            .filter(|e| e.state().is_some_and(TaskState::is_terminal))
            .count();
        assert_eq!(ends, 1, "round {round}");
        assert!(
            events
                .last()
                .unwrap()
                .state()
                .is_some_and(TaskState::is_terminal),
            "nothing after the end"
        );
        let gapless = events
            .iter()
            .zip(1..)
            .all(|(event, at)| event.position == Some(at));
        assert!(gapless, "round {round}");
        assert!(matches!(events[0].response(), StreamResponse::Task(_)));
    }
    assert!(
        canceled > 0 && completed > 0,
        "both must win at times: {canceled}, {completed}"
    );
}
