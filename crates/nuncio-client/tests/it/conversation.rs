//! Conversations (BR-013, BR-067, BR-154, BR-155, BR-158).

use std::sync::Arc;
use std::time::Duration;

use nuncio_client::{Client, Conversation, ConversationState, FollowPolicy, Reply};
use nuncio_protocol::{Binding, ErrorKind, Part, SendMessageConfiguration, TaskState};
use serde_json::{Value, json};

use crate::support::{
    Answer, BINDINGS, Fake, Numbered, Request, builder, call, piece, status, task, task_item,
};

fn talk(client: Client) -> Conversation {
    Conversation::new(client, Arc::new(Numbered::default()))
}

fn done() -> Value {
    json!([{"artifactId": "a1", "parts": [{"text": "Berlin"}]}])
}

fn waiting(state: &str, question: &str, artifacts: &Value) -> Value {
    let mut task = task(state, artifacts);
    task["status"]["message"] =
        json!({"messageId": "q", "role": "ROLE_AGENT", "parts": [{"text": question}]});
    task
}

#[tokio::test]
async fn br_154_submitted_is_not_an_answer() {
    for binding in BINDINGS {
        for streaming in [true, false] {
            let mut polls = 0;
            let fake = Fake::start(
                move |request: &Request| match request.operation().as_str() {
                    "SendMessage" => request.ok(&task_item("SUBMITTED")),
                    "SendStreamingMessage" => request.stream(&[(0, task_item("SUBMITTED"))]),
                    "SubscribeToTask" => request.stream(&[
                        (0, task_item("SUBMITTED")),
                        (0, piece("Ber", false)),
                        (0, piece("lin", true)),
                        (0, status("COMPLETED")),
                    ]),
                    _ => {
                        polls += 1;
                        request.ok(&match polls {
                            1 => task("WORKING", &json!([])),
                            _ => task("COMPLETED", &done()),
                        })
                    }
                },
            )
            .await;
            let mut conversation = talk(fake.client(binding, streaming));
            let reply = conversation.ask("capital?").await.unwrap();
            assert_eq!(reply.state(), Some(TaskState::Completed));
            assert_eq!(reply.text(), "Berlin");
            assert_eq!(conversation.context_id(), Some(&"c1".into()));
            assert_eq!(conversation.open_task(), None);
        }
    }
}

/// BR-155: the wait ends with the pause, though the agent keeps the stream open.
#[tokio::test]
async fn br_155_a_needed_permission_ends_the_wait() {
    for binding in BINDINGS {
        for streaming in [true, false] {
            let fake = Fake::start(move |request: &Request| {
                let paused = waiting("AUTH_REQUIRED", "sign in at x", &json!([]));
                match request.operation().as_str() {
                    "SendMessage" => request.ok(&task_item("WORKING")),
                    "SendStreamingMessage" => request
                        .stream(&[
                            (0, task_item("WORKING")),
                            (
                                0,
                                json!({"statusUpdate": {
                            "taskId": "t1", "contextId": "c1", "status": paused["status"]}}),
                            ),
                        ])
                        .then_hang(),
                    _ => request.ok(&paused),
                }
            })
            .await;
            let mut conversation = talk(fake.client(binding, streaming));
            let reply = conversation.ask("do it").await.unwrap();
            assert_eq!(reply.state(), Some(TaskState::AuthRequired));
            assert_eq!(reply.question().unwrap().text(), "sign in at x");
            assert_eq!(conversation.open_task(), Some(&"t1".into()));
        }
    }
}

#[tokio::test]
async fn br_067_the_question_is_in_the_status_and_artifacts_are_kept() {
    for binding in BINDINGS {
        let mut asked = false;
        let fake = Fake::start(move |request: &Request| {
            let first = !std::mem::replace(&mut asked, true);
            let draft = json!([{"artifactId": "draft", "parts": [{"text": "a draft"}]}]);
            let task = match first {
                true => waiting("INPUT_REQUIRED", "which colour?", &draft),
                false => task("COMPLETED", &draft),
            };
            request.ok(&json!({"task": task}))
        })
        .await;
        let mut conversation = talk(fake.client(binding, false));
        let reply = conversation.ask("paint").await.unwrap();
        assert_eq!(reply.state(), Some(TaskState::InputRequired));
        assert_eq!(
            conversation.pending_question().unwrap().text(),
            "which colour?"
        );
        assert_eq!(reply.task().unwrap().artifacts.len(), 1);
        let reply = conversation.ask("red").await.unwrap();
        assert_eq!(reply.state(), Some(TaskState::Completed));
        assert_eq!(conversation.pending_question(), None);
        let sent: Vec<Value> = fake
            .requests()
            .iter()
            .map(|r| r.params()["message"].clone())
            .collect();
        assert_eq!(sent[0]["taskId"], Value::Null);
        assert_eq!(
            sent[1]["taskId"], "t1",
            "the answer goes to the task that asked"
        );
        assert_eq!(sent[1]["contextId"], "c1");
        assert_ne!(sent[0]["messageId"], sent[1]["messageId"]);
    }
}

/// BR-013, GEN-09.
#[tokio::test]
async fn br_013_after_the_end_the_context_stays_and_the_task_goes() {
    for state in ["COMPLETED", "FAILED", "CANCELED", "REJECTED"] {
        let fake = Fake::start(move |request: &Request| request.ok(&task_item(state))).await;
        let mut conversation = talk(fake.client(Binding::JsonRpc, false));
        conversation.ask("one").await.unwrap();
        conversation.ask("two").await.unwrap();
        let second = fake.requests()[1].params()["message"].clone();
        assert_eq!(second["contextId"], "c1", "{state}");
        assert_eq!(second["taskId"], Value::Null, "{state}");
    }
}

/// TRAP-03: the task ended while nobody looked.
#[tokio::test]
async fn trap_03_a_task_that_ended_unseen_is_let_go() {
    for (code, reason) in [(-32004, "UNSUPPORTED_OPERATION"), (-32602, "")] {
        let fake = Fake::start(move |request: &Request| {
            if request.operation() == "GetTask" {
                return request.ok(&task("COMPLETED", &json!([])));
            }
            if request.params()["message"]["taskId"].is_string() {
                return request.refused(code, 400, reason);
            }
            request.ok(&json!({"task": task("COMPLETED", &done())}))
        })
        .await;
        let mut state = ConversationState::default();
        state.open_task = Some("t1".into());
        state.context_id = Some("c1".into());
        let client = fake.client(Binding::JsonRpc, false);
        let ids = Arc::new(Numbered::default());
        let mut conversation = Conversation::restore(client, ids, state).unwrap();
        let reply = conversation.ask("and now?").await.unwrap();
        assert_eq!(reply.text(), "Berlin");
    }
}

#[tokio::test]
async fn br_158_a_wait_that_is_over_is_a_result_with_a_way_on() {
    for binding in BINDINGS {
        let mut polls = 0;
        let fake = Fake::start(move |request: &Request| {
            if request.operation() == "SendMessage" {
                return request.ok(&task_item("WORKING"));
            }
            polls += 1;
            let state = if polls > 40 { "COMPLETED" } else { "WORKING" };
            request.ok(&task(state, &done()))
        })
        .await;
        let mut follow = FollowPolicy::default();
        follow.poll.first = Duration::from_millis(1);
        follow.poll.cap = Duration::from_millis(1);
        let client = builder()
            .follow(follow)
            .build(fake.card(binding, false))
            .unwrap();
        let mut conversation = talk(client).with_max_wait(Duration::from_millis(20));
        let mut reply = conversation.ask("slow").await.unwrap();
        assert!(matches!(reply, Reply::StillRunning(_)), "{reply:?}");
        assert_eq!(reply.task_id(), Some(&"t1".into()));
        assert_eq!(conversation.open_task(), Some(&"t1".into()));
        while matches!(reply, Reply::StillRunning(_)) {
            reply = conversation.wait().await.unwrap();
        }
        assert_eq!(reply.text(), "Berlin");
        let error = conversation.wait().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidRequest);
    }
}

/// BR-158: the poll limit of the follower itself.
#[tokio::test]
async fn br_158_a_quiet_task_is_still_running_after_the_poll_limit() {
    let fake = Fake::start(|request: &Request| match request.operation().as_str() {
        "SendMessage" => request.ok(&task_item("WORKING")),
        _ => request.ok(&task("WORKING", &json!([]))),
    })
    .await;
    let mut follow = FollowPolicy::default();
    follow.poll.first = Duration::from_millis(1);
    follow.max_quiet = Duration::from_millis(5);
    let client = builder()
        .follow(follow)
        .build(fake.card(Binding::JsonRpc, false))
        .unwrap();
    let reply = talk(client).ask("slow").await.unwrap();
    assert!(matches!(reply, Reply::StillRunning(_)), "{reply:?}");
}

#[test]
fn br_158_delays_grow_to_a_cap() {
    let poll = FollowPolicy::default().poll;
    let delays: Vec<Duration> = (0..40).map(|n| poll.delay(n)).collect();
    assert!(delays.is_sorted());
    assert_eq!(delays[0], poll.first);
    assert_eq!(delays[39], poll.cap);
    assert_eq!(poll.delay(u32::MAX), poll.cap);
}

#[tokio::test]
async fn a_direct_message_is_a_reply_without_a_task() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            request.stream(&[(
                0,
                json!({"message": {"messageId": "x", "contextId": "c9",
                "role": "ROLE_AGENT", "parts": [{"text": "hi"}]}}),
            )])
        })
        .await;
        let mut conversation = talk(fake.client(binding, true));
        let mut heard = 0;
        let reply = conversation
            .ask_parts(vec![Part::text("hi")], |_| heard += 1)
            .await
            .unwrap();
        assert_eq!((reply.text().as_str(), heard), ("hi", 1));
        assert!(reply.task().is_none());
        assert_eq!(conversation.context_id(), Some(&"c9".into()));
    }
}

#[tokio::test]
async fn call_and_configuration_go_with_every_message() {
    let fake =
        Fake::start(|request: &Request| request.stream(&[(1, task_item("COMPLETED"))])).await;
    let mut common = call();
    common.trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        .parse()
        .ok();
    let mut configuration = SendMessageConfiguration::default();
    configuration.accepted_output_modes = vec!["text/plain".to_owned()];
    let mut conversation = talk(fake.client(Binding::JsonRpc, true))
        .with_call(common)
        .with_configuration(configuration);
    for text in ["one", "two"] {
        conversation.ask(text).await.unwrap();
    }
    for request in fake.requests() {
        assert!(request.header("traceparent").is_some());
        let modes = &request.params()["configuration"]["acceptedOutputModes"];
        assert_eq!(*modes, json!(["text/plain"]));
    }
}

#[tokio::test]
async fn a_conversation_can_be_saved_and_taken_up() {
    let fake = Fake::start(|request: &Request| {
        request.ok(&json!({"task": waiting("INPUT_REQUIRED", "which?", &json!([]))}))
    })
    .await;
    let mut conversation = talk(fake.client(Binding::JsonRpc, false));
    conversation.ask("go").await.unwrap();
    let text = serde_json::to_string(&conversation.save()).unwrap();
    let saved: ConversationState = serde_json::from_str(&text).unwrap();
    assert_eq!(saved.format, 1);
    let ids = Arc::new(Numbered::default());
    let client = fake.client(Binding::JsonRpc, false);
    let restored = Conversation::restore(client.clone(), ids.clone(), saved.clone()).unwrap();
    assert_eq!(restored.pending_question().unwrap().text(), "which?");
    assert_eq!(restored.open_task(), Some(&"t1".into()));
    let mut newer = saved;
    newer.format = 2;
    assert!(Conversation::restore(client, ids, newer).is_err());
}

#[tokio::test]
async fn an_error_leaves_the_open_task_open() {
    let mut first = true;
    let fake = Fake::start(move |request: &Request| {
        if std::mem::replace(&mut first, false) {
            return request.stream(&[(0, task_item("WORKING"))]);
        }
        Answer::with_type(403, "text/plain", "")
    })
    .await;
    let mut conversation = talk(fake.client(Binding::JsonRpc, true));
    let error = conversation.ask("go").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::PermissionDenied);
    assert_eq!(conversation.open_task(), Some(&"t1".into()));
}
