//! Sending: blocking, at once, follow-ups, repetitions, queues, conversations.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_engine::Settings;
use nuncio_protocol::{
    AgentService as _, ErrorKind, GetTaskRequest, ListTasksRequest, Role, SendMessageConfiguration,
    SendMessageResponse, TaskPushNotificationConfig, TaskState,
};
use nuncio_store::{MemoryOptions, MemoryStore};
use nuncio_testkit::{
    Bed, Behaviour, FaultyStore, TestAgent, artifact_text, call, send, sent_task, text_message,
};

#[tokio::test]
async fn a_blocking_send_gives_the_finished_task() {
    let bed = Bed::new(Behaviour::Echo);
    let task = bed.ask("m1", "hello").await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(artifact_text(&task), "hello");
    assert_eq!(task.history.len(), 1, "OP-SEND-26");
    assert!(task.context_id.is_some(), "OP-SEND-14");
    assert!(task.status.timestamp.is_some(), "ST-03");
    assert_eq!(bed.task(&task.id).await, task);
}

/// BR-001, OP-SEND-05: the answer does not wait for the agent.
#[tokio::test(start_paused = true)]
async fn br_001_an_immediate_send_returns_at_once() {
    let bed = Bed::new(Behaviour::Slow(10));
    let begin = tokio::time::Instant::now();
    let task = bed.start("m1", "go").await;
    assert!(begin.elapsed() < Duration::from_millis(300));
    assert!(matches!(
        task.status.state,
        TaskState::Submitted | TaskState::Working
    ));
    tokio::time::sleep(Duration::from_secs(11)).await;
    let task = bed.task(&task.id).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(artifact_text(&task), "1 2 3 4 5 6 7 8 9 10 ");
}

/// BR-002: immediate sends need no event of any agent.
#[tokio::test(start_paused = true)]
async fn br_002_busy_agents_do_not_delay_immediate_sends() {
    let bed = Bed::new(Behaviour::Slow(30));
    for n in 0..200 {
        bed.start(&format!("busy-{n}"), "go").await;
    }
    let begin = tokio::time::Instant::now();
    for n in 0..50 {
        bed.start(&format!("m-{n}"), "go").await;
    }
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

/// BR-003: a blocking send ends when the task pauses.
#[tokio::test(start_paused = true)]
async fn br_003_a_pause_ends_the_wait() {
    let asked = Bed::new(Behaviour::Ask(1)).ask("m1", "go").await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    assert_eq!(
        asked.status.message.map(|m| m.text()).as_deref(),
        Some("question 1")
    );
    let auth = Bed::new(Behaviour::Auth).ask("m1", "go").await;
    assert_eq!(auth.status.state, TaskState::AuthRequired);
}

/// BR-004, ST-08: an agent without result leaves a failed task.
#[tokio::test]
async fn br_004_a_silent_agent_fails_its_task() {
    let task = Bed::new(Behaviour::Silent).ask("m1", "go").await;
    assert_eq!(task.status.state, TaskState::Failed);
    let message = task.status.message.map(|m| m.text()).unwrap_or_default();
    assert!(message.contains("ended without result"), "{message}");
}

/// BR-007: state, message and time of an answer belong to one event.
#[tokio::test]
async fn br_007_an_answer_is_one_moment() {
    let bed = Bed::new(Behaviour::Fail { after_event: false });
    for n in 0..1_000 {
        let task = bed.start(&format!("m{n}"), "go").await;
        let failed = task.status.state == TaskState::Failed;
        assert_eq!(task.status.message.is_some(), failed, "{:?}", task.status);
    }
}

/// BR-008, OP-SEND-23: a message to a running task is taken and answered in its turn.
#[tokio::test(start_paused = true)]
async fn br_008_follow_ups_of_a_running_task_are_queued() {
    let bed = Bed::new(Behaviour::Slow(3));
    let task = bed.start("m1", "first").await;
    for (id, text) in [("m2", "second"), ("m3", "third")] {
        let mut message = text_message(id, text);
        message.task_id = Some(task.id.clone());
        let mut request = send(message);
        let mut configuration = SendMessageConfiguration::default();
        configuration.return_immediately = true;
        request.configuration = Some(configuration);
        let answer = sent_task(
            bed.agent
                .send_message(call("alice"), request)
                .await
                .unwrap(),
        );
        assert_eq!(answer.id, task.id);
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    let done = bed.task(&task.id).await;
    assert_eq!(done.status.state, TaskState::Completed);
    let users: Vec<_> = done
        .history
        .iter()
        .filter(|m| m.role == Role::User)
        .map(|m| m.text())
        .collect();
    assert_eq!(users, ["first", "second", "third"]);
    assert_eq!(*bed.trace.texts.lock(), ["first", "second", "third"]);
    assert_eq!(bed.trace.most_active.load(Ordering::SeqCst), 1, "ST-11");
}

/// A blocking sender of a queued message waits for its own answer.
#[tokio::test(start_paused = true)]
async fn a_queued_sender_waits_for_its_own_turn() {
    let bed = Bed::new(Behaviour::Slow(2));
    let task = bed.start("m1", "first").await;
    let done = bed.answer("m2", &task, "second").await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_single_turn_agent_refuses_messages_while_it_works() {
    let bed = Bed::with(
        TestAgent::new(Behaviour::Slow(5)).one_at_a_time(),
        Settings::default(),
    );
    let task = bed.start("m1", "first").await;
    let before = bed.task(&task.id).await;
    let mut message = text_message("m2", "second");
    message.task_id = Some(task.id.clone());
    let error = bed
        .agent
        .send_message(call("alice"), send(message))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::UnsupportedOperation);
    assert_eq!(bed.task(&task.id).await.history, before.history);
}

/// BR-010, OP-SEND-09: clients do not make task ids.
#[tokio::test]
async fn br_010_an_unknown_task_id_makes_no_task() {
    let bed = Bed::new(Behaviour::Echo);
    let mut message = text_message("m1", "hello");
    message.task_id = Some("made-up".into());
    let error = bed
        .agent
        .send_message(call("alice"), send(message.clone()))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::TaskNotFound);
    let stream = bed
        .agent
        .send_streaming_message(call("alice"), send(message))
        .await;
    assert_eq!(stream.err().map(|e| e.kind), Some(ErrorKind::TaskNotFound));
    let page = bed
        .agent
        .list_tasks(call("alice"), ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(page.total_size, 0);
}

/// BR-011, OP-SEND-11, OP-SEND-12: the context is the task's.
#[tokio::test]
async fn br_011_a_foreign_context_is_refused_and_changes_nothing() {
    let bed = Bed::new(Behaviour::Ask(1));
    let task = bed.ask("m1", "go").await;
    let mut message = text_message("m2", "answer");
    message.task_id = Some(task.id.clone());
    message.context_id = Some("another".into());
    let error = bed
        .agent
        .send_message(call("alice"), send(message))
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert_eq!(error.violations()[0].field, "message.contextId");
    assert_eq!(bed.task(&task.id).await, task);
    let done = bed.answer("m3", &task, "answer").await;
    assert_eq!(done.context_id, task.context_id);
    assert_eq!(done.history.last().unwrap().context_id, task.context_id);
}

/// BR-012, P8: the client's own context id is kept.
#[tokio::test]
async fn br_012_a_context_of_the_client_is_kept() {
    let bed = Bed::new(Behaviour::Echo);
    let mut message = text_message("m1", "hello");
    message.context_id = Some("my-ctx".into());
    let task = sent_task(
        bed.agent
            .send_message(call("alice"), send(message))
            .await
            .unwrap(),
    );
    assert_eq!(task.context_id.unwrap().as_str(), "my-ctx");
}

/// BR-013, OP-SEND-10: an ended task takes no message.
#[tokio::test]
async fn br_013_a_message_to_an_ended_task_is_refused() {
    for behaviour in [Behaviour::Echo, Behaviour::Silent, Behaviour::Reject] {
        let bed = Bed::new(behaviour);
        let task = bed.ask("m1", "hello").await;
        let mut message = text_message("m2", "again");
        message.task_id = Some(task.id.clone());
        let error = bed
            .agent
            .send_message(call("alice"), send(message))
            .await
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::UnsupportedOperation);
        assert_eq!(bed.task(&task.id).await, task);
    }
}

/// BR-014, OP-SEND-16: a repeated message is answered once.
#[tokio::test(start_paused = true)]
async fn br_014_a_repeated_message_runs_once() {
    let bed = Bed::new(Behaviour::Slow(2));
    let first = bed.start("m1", "hello").await;
    let while_running = bed.ask("m1", "hello").await;
    let after = bed.ask("m1", "hello").await;
    assert_eq!((&while_running.id, &after.id), (&first.id, &first.id));
    assert_eq!(after.status.state, TaskState::Completed);
    assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 1);
    let other = bed
        .agent
        .send_message(call("alice"), send(text_message("m1", "other")))
        .await;
    let error = other.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidParams);
    assert_eq!(error.violations()[0].field, "message.messageId");
    let bobs = bed
        .agent
        .send_message(call("bob"), send(text_message("m1", "hello")))
        .await
        .unwrap();
    assert_ne!(sent_task(bobs).id, first.id);
}

/// The order of members says nothing: another client or binding writes them in another one.
#[tokio::test]
async fn br_014_the_order_of_members_makes_no_other_request() {
    let bed = Bed::new(Behaviour::Echo);
    let message = |data: &str, metadata: &str| {
        let mut message = text_message("m1", "hello");
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        message.parts.push(nuncio_protocol::Part::data(data));
        message.metadata = serde_json::from_str(metadata).unwrap();
        send(message)
    };
    let sent = |request| bed.agent.send_message(call("alice"), request);
    let first = sent(message(
        r#"{"a":1,"b":[{"c":2,"d":3}]}"#,
        r#"{"x":1,"y":{"v":1,"w":2}}"#,
    ));
    let first = sent_task(first.await.unwrap()).id;
    let again = sent(message(
        r#"{"b":[{"d":3,"c":2}],"a":1}"#,
        r#"{"y":{"w":2,"v":1},"x":1}"#,
    ));
    assert_eq!(sent_task(again.await.unwrap()).id, first);
    let other = sent(message(
        r#"{"b":[{"d":3,"c":2}],"a":1}"#,
        r#"{"y":{"w":2,"v":1},"x":2}"#,
    ));
    assert_eq!(other.await.unwrap_err().kind, ErrorKind::InvalidParams);
}

/// P2: an explicit key counts more than the message id.
#[tokio::test]
async fn an_idempotency_key_makes_a_send_happen_once() {
    let bed = Bed::new(Behaviour::Echo);
    let mut with_key = call("alice");
    with_key.idempotency_key = Some("k1".to_owned());
    let first = bed
        .agent
        .send_message(with_key.clone(), send(text_message("m1", "hello")))
        .await;
    let again = bed
        .agent
        .send_message(with_key, send(text_message("m1", "hello")))
        .await;
    assert_eq!(sent_task(first.unwrap()).id, sent_task(again.unwrap()).id);
    assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 1);
}

/// Repetitions of follow-ups are recognised too, also when their task has ended.
#[tokio::test]
async fn a_repeated_answer_is_taken_once() {
    let bed = Bed::new(Behaviour::Ask(1));
    let task = bed.ask("m1", "go").await;
    let done = bed.answer("m2", &task, "blue").await;
    let again = bed.answer("m2", &task, "blue").await;
    assert_eq!(again, done);
    assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 2);
}

/// Two senders of the same message at once: one task, one run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_014_concurrent_repetitions_make_one_task() {
    let bed = std::sync::Arc::new(Bed::new(Behaviour::Echo));
    for round in 0..200 {
        let sends = (0..4).map(|_| {
            let bed = std::sync::Arc::clone(&bed);
            tokio::spawn(async move { bed.ask(&format!("m{round}"), "hello").await.id })
        });
        let ids: Vec<_> = futures_util::future::join_all(sends).await;
        let first = ids[0].as_ref().unwrap();
        assert!(ids.iter().all(|id| id.as_ref().unwrap() == first));
    }
    assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 200);
}

/// Off by setting: the conformance kit sends the same ids again and again.
#[tokio::test]
async fn deduplication_by_message_id_can_be_off() {
    let mut settings = Settings::default();
    settings.deduplicate_by_message_id = false;
    let bed = Bed::with(TestAgent::new(Behaviour::Echo), settings);
    assert_ne!(
        bed.ask("m1", "hello").await.id,
        bed.ask("m1", "hello").await.id
    );
}

/// BR-060, BR-061, ST-06: both sides' turns are in the history once, in order.
#[tokio::test]
async fn br_060_the_history_has_every_turn_once() {
    let bed = Bed::new(Behaviour::Ask(2));
    let task = bed.ask("m1", "u1").await;
    let task = bed.answer("m2", &task, "u2").await;
    assert_eq!(task.status.message.as_ref().unwrap().text(), "question 2");
    let texts: Vec<_> = task.history.iter().map(|m| m.text()).collect();
    assert_eq!(
        texts,
        ["u1", "question 1", "u2"],
        "the open question is only in the status"
    );
    let task = bed.answer("m3", &task, "u3").await;
    let texts: Vec<_> = task.history.iter().map(|m| m.text()).collect();
    assert_eq!(texts, ["u1", "question 1", "u2", "question 2", "u3"]);
    assert_eq!(task.status.message, None);
    assert_eq!(bed.task(&task.id).await, task);
}

/// BR-063, GEN-09: a new task of a conversation begins empty.
#[tokio::test]
async fn br_063_a_new_task_inherits_nothing() {
    let bed = Bed::new(Behaviour::Echo);
    let first = bed.ask("m1", "one").await;
    let mut message = text_message("m2", "two");
    message.context_id.clone_from(&first.context_id);
    let second = sent_task(
        bed.agent
            .send_message(call("alice"), send(message))
            .await
            .unwrap(),
    );
    assert_ne!(second.id, first.id);
    assert_eq!(second.context_id, first.context_id);
    assert_eq!(
        (second.history.len(), artifact_text(&second).as_str()),
        (1, "two")
    );
    assert_eq!(bed.task(&first.id).await, first);
}

/// BR-064, OP-SEND-19, OP-GET-03: `historyLength` shapes replies only.
#[tokio::test]
async fn br_064_history_length_counts_the_newest() {
    let bed = Bed::new(Behaviour::Ask(2));
    let task = bed.ask("m1", "u1").await;
    let task = bed.answer("m2", &task, "u2").await;
    for (length, expected) in [
        (None, 3),
        (Some(0), 0),
        (Some(1), 1),
        (Some(2), 2),
        (Some(100), 3),
    ] {
        let mut request = GetTaskRequest::new(task.id.clone());
        request.history_length = length;
        let got = bed.agent.get_task(call("alice"), request).await.unwrap();
        assert_eq!(got.history.len(), expected, "get {length:?}");
        assert_eq!(got.history, task.history[3 - expected..]);
        let mut request = ListTasksRequest::default();
        request.history_length = length;
        let page = bed.agent.list_tasks(call("alice"), request).await.unwrap();
        assert_eq!(page.tasks[0].history.len(), expected, "list {length:?}");
        let mut request = send(text_message("m2", "u2"));
        request.message.as_mut().unwrap().task_id = Some(task.id.clone());
        let mut configuration = SendMessageConfiguration::default();
        configuration.history_length = length;
        request.configuration = Some(configuration);
        let sent = sent_task(
            bed.agent
                .send_message(call("alice"), request)
                .await
                .unwrap(),
        );
        assert_eq!(sent.history.len(), expected, "send {length:?}");
    }
}

/// The damaged-order story: evidence that names only its conversation reaches the one open question.
#[tokio::test]
async fn a_message_that_names_only_its_context_answers_the_one_waiting_task() {
    let bed = Bed::new(Behaviour::Ask(1));
    let task = bed.ask("m1", "go").await;
    let mut message = text_message("m2", "blue");
    message.context_id.clone_from(&task.context_id);
    let done = sent_task(
        bed.agent
            .send_message(call("alice"), send(message.clone()))
            .await
            .unwrap(),
    );
    assert_eq!(
        (&done.id, done.status.state),
        (&task.id, TaskState::Completed)
    );
    let again = sent_task(
        bed.agent
            .send_message(call("alice"), send(message))
            .await
            .unwrap(),
    );
    assert_eq!(
        again.id, task.id,
        "a repetition goes where the first one went"
    );
    // Two that wait: nobody can know which is meant.
    let mut other = text_message("m3", "go");
    other.context_id = Some("shared".into());
    sent_task(
        bed.agent
            .send_message(call("alice"), send(other.clone()))
            .await
            .unwrap(),
    );
    let mut settings = Settings::default();
    settings.resume_by_context = false;
    let off = Bed::with(TestAgent::new(Behaviour::Ask(1)), settings);
    let first = off.ask("m1", "go").await;
    let mut message = text_message("m2", "blue");
    message.context_id.clone_from(&first.context_id);
    let second = sent_task(
        off.agent
            .send_message(call("alice"), send(message))
            .await
            .unwrap(),
    );
    assert_ne!(second.id, first.id);
}

/// BR-148, BR-149, SEC-02: other callers' tasks and contexts are not there.
#[tokio::test]
async fn br_148_what_another_caller_made_is_absent() {
    let bed = Bed::new(Behaviour::Ask(1));
    let task = bed.ask("m1", "go").await;
    let not_found = |error: nuncio_protocol::A2aError| {
        assert_eq!(error.kind, ErrorKind::TaskNotFound);
        error.message.replace(task.id.as_str(), "ID")
    };
    let unknown = bed
        .agent
        .get_task(call("bob"), GetTaskRequest::new("nope"))
        .await
        .unwrap_err();
    let expected = unknown.message.replace("nope", "ID");
    let id = task.id.clone();
    let got = bed
        .agent
        .get_task(call("bob"), GetTaskRequest::new(id.clone()))
        .await;
    assert_eq!(not_found(got.unwrap_err()), expected);
    let canceled = bed.agent.cancel_task(
        call("bob"),
        nuncio_protocol::CancelTaskRequest::new(id.clone()),
    );
    assert_eq!(not_found(canceled.await.unwrap_err()), expected);
    let request = nuncio_protocol::SubscribeToTaskRequest::new(id.clone());
    let subscribed = bed.agent.subscribe_to_task(call("bob"), request).await;
    assert_eq!(not_found(subscribed.err().unwrap()), expected);
    let mut message = text_message("b1", "mine now");
    message.task_id = Some(id);
    let sent = bed.agent.send_message(call("bob"), send(message)).await;
    assert_eq!(not_found(sent.unwrap_err()), expected);
    let mut message = text_message("b2", "joining");
    message.context_id.clone_from(&task.context_id);
    let joined = sent_task(
        bed.agent
            .send_message(call("bob"), send(message))
            .await
            .unwrap(),
    );
    assert_ne!(joined.id, task.id, "OP-SEND-15");
    let page = bed
        .agent
        .list_tasks(call("bob"), ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(page.tasks.len(), 1);
    assert_eq!(bed.task(&task.id).await, task);
}

/// OP-SEND-24: the agent sees the referenced tasks the caller may see, and no others.
#[tokio::test]
async fn referenced_tasks_reach_the_agent_if_they_are_the_callers() {
    let bed = Bed::new(Behaviour::Echo);
    let mine = bed.ask("m1", "mine").await;
    let theirs = bed
        .agent
        .send_message(call("bob"), send(text_message("m1", "theirs")))
        .await;
    let mut message = text_message("m2", "compare");
    message.reference_task_ids = vec![
        mine.id.clone(),
        sent_task(theirs.unwrap()).id,
        "none".into(),
    ];
    bed.agent
        .send_message(call("alice"), send(message))
        .await
        .unwrap();
    let input = bed.trace.input.lock().clone().unwrap();
    assert_eq!(
        input.references.iter().map(|t| &t.id).collect::<Vec<_>>(),
        [&mine.id]
    );
}

/// OP-SEND-25: metadata reaches the agent unchanged.
#[tokio::test]
async fn metadata_reaches_the_agent() {
    let bed = Bed::new(Behaviour::Echo);
    let mut request = send(text_message("m1", "hello"));
    let metadata = serde_json::json!({"a": {"b": [1, null, 9_007_199_254_740_993_i64]}});
    request.metadata = metadata.as_object().cloned();
    bed.agent
        .send_message(call("alice"), request)
        .await
        .unwrap();
    let input = bed.trace.input.lock().clone().unwrap();
    assert_eq!(serde_json::Value::from(input.metadata.unwrap()), metadata);
}

/// A direct answer makes no task; an agent that thinks too long gets one.
#[tokio::test(start_paused = true)]
async fn a_direct_answer_makes_no_task() {
    let bed = Bed::new(Behaviour::Message);
    let answer = bed
        .agent
        .send_message(call("alice"), send(text_message("m1", "hello")))
        .await
        .unwrap();
    let SendMessageResponse::Message(message) = answer else {
        panic!("expected a message")
    };
    assert_eq!(
        (message.text().as_str(), message.role),
        ("hello", Role::Agent)
    );
    assert!(
        message.context_id.is_some() && message.task_id.is_none(),
        "OP-SEND-22"
    );
    let page = bed
        .agent
        .list_tasks(call("alice"), ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(page.total_size, 0);

    let late = Bed::new(Behaviour::SlowMessage(Duration::from_secs(10)));
    let task = late.ask("m1", "hello").await;
    assert_eq!(
        (task.status.state, artifact_text(&task).as_str()),
        (TaskState::Completed, "hello")
    );
}

/// OP-SEND-20: a webhook that nobody would call is refused, and no task made.
#[tokio::test]
async fn a_webhook_is_refused_before_anything_happens() {
    let bed = Bed::new(Behaviour::Echo);
    let mut webhook = TaskPushNotificationConfig::default();
    webhook.url = "https://example.com/hook".to_owned();
    let mut configuration = SendMessageConfiguration::default();
    configuration.task_push_notification_config = Some(webhook);
    let mut request = send(text_message("m1", "hello"));
    request.configuration = Some(configuration);
    let error = bed
        .agent
        .send_message(call("alice"), request)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::PushNotificationNotSupported);
    assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 0);
}

/// OP-SEND-08: a wait has a ceiling, and then the task is given as it stands.
#[tokio::test(start_paused = true)]
async fn a_wait_that_takes_too_long_gives_the_task_as_it_stands() {
    let mut settings = Settings::default();
    settings.blocking_ceiling = Duration::from_secs(3);
    let bed = Bed::with(TestAgent::new(Behaviour::Slow(10)), settings);
    let task = bed.ask("m1", "go").await;
    assert_eq!(task.status.state, TaskState::Working);
}

/// BR-076: two answers at once: one run at a time, both in the history, in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_076_two_answers_at_once_are_answered_one_after_the_other() {
    for round in 0..200 {
        let bed = std::sync::Arc::new(Bed::new(Behaviour::Ask(1)));
        let task = bed.ask("m1", "go").await;
        let answers = ["a", "b"].map(|text| {
            let (bed, id) = (std::sync::Arc::clone(&bed), task.id.clone());
            tokio::spawn(async move {
                let mut message = text_message(text, text);
                message.task_id = Some(id);
                bed.agent
                    .send_message(call("alice"), send(message))
                    .await
                    .map(sent_task)
            })
        });
        let mut taken = 0;
        for answer in answers {
            match answer.await.unwrap() {
                Ok(task) => {
                    assert_eq!(task.status.state, TaskState::Completed);
                    taken += 1;
                }
                Err(error) => assert_eq!(error.kind, ErrorKind::UnsupportedOperation),
            }
        }
        let task = bed.task(&task.id).await;
        let users = task.history.iter().filter(|m| m.role == Role::User).count();
        assert_eq!(users, 1 + taken, "round {round}");
        assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 1 + taken);
        assert_eq!(bed.trace.most_active.load(Ordering::SeqCst), 1);
    }
}

/// A short answer of an agent that may be run again costs one commit, and is stored before it is
/// told all the same.
#[tokio::test]
async fn a_short_run_of_a_resumable_agent_is_one_commit() {
    let store = std::sync::Arc::new(FaultyStore::new(std::sync::Arc::new(MemoryStore::new(
        MemoryOptions::default(),
    ))));
    let commits = || store.writes.load(Ordering::SeqCst);
    let agent = TestAgent::new(Behaviour::Echo).resumable();
    let bed = Bed::on(
        std::sync::Arc::clone(&store) as _,
        agent,
        Settings::default(),
    );
    let task = bed.ask("m1", "hello").await;
    assert_eq!((task.status.state, commits()), (TaskState::Completed, 1));
    assert_eq!(bed.task(&task.id).await, task);
    assert_eq!(bed.ask("m1", "hello").await, task);
    assert_eq!((bed.trace.runs.load(Ordering::SeqCst), commits()), (1, 1));
    let other = bed
        .agent
        .send_message(call("alice"), send(text_message("m1", "other")))
        .await;
    assert_eq!(
        other.unwrap_err().violations()[0].field,
        "message.messageId"
    );
    store.refuse_writes(true);
    let refused = bed
        .agent
        .send_message(call("alice"), send(text_message("m2", "hello")))
        .await;
    assert!(refused.unwrap_err().kind.is_retryable());
    store.refuse_writes(false);
    let page = bed
        .agent
        .list_tasks(call("alice"), ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(page.total_size, 1, "what was refused is not there");
    assert_eq!(
        bed.ask("m2", "hello").await.status.state,
        TaskState::Completed
    );
}

/// A run that takes its time is stored at its first pause, so that it can be found and canceled.
#[tokio::test(start_paused = true)]
async fn a_long_run_of_a_resumable_agent_is_stored_at_once() {
    let agent = TestAgent::new(Behaviour::Slow(60)).resumable();
    let bed = std::sync::Arc::new(Bed::with(agent, Settings::default()));
    let waiting = {
        let bed = std::sync::Arc::clone(&bed);
        tokio::spawn(async move { bed.ask("m1", "go").await })
    };
    tokio::time::sleep(Duration::from_millis(10)).await;
    let page = bed
        .agent
        .list_tasks(call("alice"), ListTasksRequest::default())
        .await
        .unwrap();
    assert_eq!(page.tasks[0].status.state, TaskState::Working);
    let joined = bed.start("m1", "go").await;
    assert_eq!(joined.id, page.tasks[0].id);
    let request = nuncio_protocol::CancelTaskRequest::new(joined.id);
    bed.agent.cancel_task(call("alice"), request).await.unwrap();
    assert_eq!(waiting.await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 1);
}

/// BR-014 for agents whose run begins before their task is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn br_014_concurrent_repetitions_of_a_resumable_agent_run_once() {
    for behaviour in [
        Behaviour::Echo,
        Behaviour::Status(Duration::from_micros(50)),
    ] {
        let agent = TestAgent::new(behaviour).resumable();
        let bed = std::sync::Arc::new(Bed::with(agent, Settings::default()));
        for round in 0..300 {
            let sends = (0..4).map(|_| {
                let bed = std::sync::Arc::clone(&bed);
                tokio::spawn(async move { bed.ask(&format!("m{round}"), "hello").await.id })
            });
            let ids: Vec<_> = futures_util::future::join_all(sends).await;
            let first = ids[0].as_ref().unwrap();
            assert!(ids.iter().all(|id| id.as_ref().unwrap() == first));
        }
        assert_eq!(bed.trace.runs.load(Ordering::SeqCst), 300);
    }
}
