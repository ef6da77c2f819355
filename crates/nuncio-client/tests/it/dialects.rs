//! What the client does, over every binding in every version.

use std::time::Duration;

use nuncio_client::{Cause, Conversation, Credentials, cause, task_text};
use nuncio_protocol::{
    A2aError, AgentCard, AgentService as _, Artifact, Binding, CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest, ErrorKind, Event, GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest, GetTaskRequest, ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Message,
    Operation, OperationKind, Outcome, Part, SendMessageResponse, StreamResponse,
    SubscribeToTaskRequest, Task, TaskArtifactUpdateEvent, TaskPushNotificationConfig, TaskState,
    TaskStatus, TaskStatusUpdateEvent, Version,
};
use serde_json::json;

use crate::agent::{ALL, Agent, Asked, End, Reply};
use crate::support::{Numbered, builder, call, collect, hello, shapes};

fn task(state: TaskState) -> Task {
    let mut status = TaskStatus::default();
    status.state = state;
    Task::new("t1".into(), "c1".into(), status)
}

fn with_text(state: TaskState, text: &str) -> Task {
    let mut task = task(state);
    task.artifacts = vec![Artifact::new("a1", vec![Part::text(text)])];
    task
}

fn status(state: TaskState) -> StreamResponse {
    let mut update = TaskStatusUpdateEvent::default();
    (update.task_id, update.context_id) = ("t1".into(), "c1".into());
    update.status.state = state;
    StreamResponse::StatusUpdate(update)
}

fn piece(text: &str, append: bool) -> StreamResponse {
    let artifact = Artifact::new("a1", vec![Part::text(text)]);
    let mut update = TaskArtifactUpdateEvent::new("t1".into(), "c1".into(), artifact);
    update.append = append;
    StreamResponse::ArtifactUpdate(update)
}

fn sent(task: Task) -> Reply {
    Reply::Outcome(Outcome::Sent(SendMessageResponse::Task(task)))
}

/// Folds the items as a caller would.
fn fold(events: &[Event]) -> Task {
    let mut folded = Task::default();
    for event in events {
        match event.response() {
            StreamResponse::Task(whole) => folded = whole.clone(),
            other => folded.apply_leniently(other),
        }
    }
    folded
}

fn webhook() -> TaskPushNotificationConfig {
    let mut config = TaskPushNotificationConfig::default();
    config.task_id = Some("t1".into());
    config.id = Some("p1".into());
    config.url = "https://h.example/".to_owned();
    config
}

/// Answers every operation.
fn obliging(asked: &Asked) -> Reply {
    Reply::Outcome(match &asked.operation {
        Operation::SendMessage(_) => return sent(with_text(TaskState::Completed, "hi")),
        Operation::SendStreamingMessage(_) | Operation::SubscribeToTask(_) => {
            let items = vec![
                StreamResponse::Task(task(TaskState::Working)),
                piece("hi", false),
                status(TaskState::Completed),
            ];
            return Reply::Stream(items, End::Well);
        }
        Operation::GetTask(_) => Outcome::Task(with_text(TaskState::Completed, "hi")),
        Operation::CancelTask(_) => Outcome::Task(task(TaskState::Canceled)),
        Operation::ListTasks(_) => {
            let mut page = ListTasksResponse::default();
            page.tasks = vec![task(TaskState::Completed)];
            Outcome::Tasks(page)
        }
        Operation::CreateTaskPushNotificationConfig(_)
        | Operation::GetTaskPushNotificationConfig(_) => Outcome::PushConfig(webhook()),
        Operation::ListTaskPushNotificationConfigs(_) => {
            let mut list = ListTaskPushNotificationConfigsResponse::default();
            list.configs = vec![webhook()];
            Outcome::PushConfigs(list)
        }
        Operation::DeleteTaskPushNotificationConfig(_) => Outcome::Deleted,
        _ => {
            let mut card = AgentCard::default();
            card.name = "for you".to_owned();
            Outcome::Card(Box::new(card))
        }
    })
}

/// VER-01, V03-12, EXT-01, GRPC-02: all eleven operations, with what must go along.
#[tokio::test]
async fn every_operation_is_asked_and_understood() {
    for (binding, version) in ALL {
        let agent = Agent::start(version, obliging).await;
        let client = builder()
            .extensions(["https://x.example/a"])
            .credentials_for(
                format!("http://{}", agent.address),
                Credentials::Bearer("s3cret".into()),
            )
            .header_for(format!("http://{}", agent.address), "x-api-key", "k3y");
        let client = agent.client_of(client, binding);
        assert_eq!((client.binding(), client.version()), (binding, version));
        let mut call = call();
        call.idempotency_key = Some("key-1".into());
        let sent = client.send_message(call.clone(), hello()).await.unwrap();
        assert!(matches!(sent, SendMessageResponse::Task(task) if task_text(&task) == "hi"));
        let stream = client.send_streaming_message(call.clone(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{binding} {version}: {error:?}");
        assert_eq!(shapes(&events), ["task", "artifact", "status"]);
        let asked = SubscribeToTaskRequest::new("t1");
        let stream = client.subscribe_to_task(call.clone(), asked).await;
        assert_eq!(collect(stream.unwrap()).await.0.len(), 3);
        let got = client
            .get_task(call.clone(), GetTaskRequest::new("t1"))
            .await;
        assert_eq!(got.unwrap().id, "t1".into());
        let canceled = client
            .cancel_task(call.clone(), CancelTaskRequest::new("t1"))
            .await;
        assert_eq!(canceled.unwrap().status.state, TaskState::Canceled);
        let made = client.create_push_config(call.clone(), webhook()).await;
        assert_eq!(made.unwrap().id, Some("p1".into()), "{binding} {version}");
        let mut asked = GetTaskPushNotificationConfigRequest::default();
        (asked.task_id, asked.id) = ("t1".into(), "p1".into());
        let got = client.get_push_config(call.clone(), asked).await;
        assert_eq!(got.unwrap().url, "https://h.example/");
        let mut asked = ListTaskPushNotificationConfigsRequest::default();
        asked.task_id = "t1".into();
        let listed = client.list_push_configs(call.clone(), asked).await;
        assert_eq!(listed.unwrap().configs.len(), 1);
        let mut asked = DeleteTaskPushNotificationConfigRequest::default();
        (asked.task_id, asked.id) = ("t1".into(), "p1".into());
        client
            .delete_push_config(call.clone(), asked)
            .await
            .unwrap();
        let asked = GetExtendedAgentCardRequest::default();
        let card = client.get_extended_agent_card(call.clone(), asked).await;
        assert_eq!(card.unwrap().name, "for you");
        let listed = client.list_tasks(call, ListTasksRequest::default()).await;
        let asked = agent.asked();
        match version {
            Version::V0_3 => {
                // V03-11: nobody is asked.
                let refused = listed.unwrap_err();
                assert_eq!(refused.kind, ErrorKind::UnsupportedOperation);
                assert_eq!(asked.len(), 10);
            }
            _ => assert_eq!(listed.unwrap().tasks.len(), 1),
        }
        let extensions = match version {
            Version::V0_3 => "x-a2a-extensions",
            _ => "a2a-extensions",
        };
        for asked in &asked {
            for (name, value) in [
                ("a2a-version", version.as_str()),
                (extensions, "https://x.example/a"),
                ("authorization", "Bearer s3cret"),
                ("x-api-key", "k3y"),
                ("idempotency-key", "key-1"),
            ] {
                assert_eq!(
                    asked.header(name),
                    Some(value),
                    "{binding} {version} {name}"
                );
            }
            let te = (binding == Binding::Grpc).then_some("trailers");
            assert_eq!(asked.header("te"), te);
        }
    }
}

/// BR-028, BR-154: what has only begun is followed to its end.
#[tokio::test]
async fn br_154_a_submitted_task_is_not_the_answer() {
    for (binding, version) in ALL {
        let agent = Agent::start(version, |asked| match asked.operation {
            Operation::SendStreamingMessage(_) => {
                let begun = StreamResponse::Task(task(TaskState::Submitted));
                Reply::Stream(vec![begun], End::Well)
            }
            Operation::SubscribeToTask(_) => Reply::Stream(
                vec![
                    StreamResponse::Task(task(TaskState::Working)),
                    piece("the ", false),
                    piece("answer", true),
                    status(TaskState::Completed),
                ],
                End::Well,
            ),
            _ => Reply::Outcome(Outcome::Task(with_text(TaskState::Completed, "the answer"))),
        })
        .await;
        let ids = std::sync::Arc::new(Numbered::default());
        let mut conversation = Conversation::new(agent.client(binding), ids);
        let reply = conversation.ask("question").await.unwrap();
        assert_eq!(reply.state(), Some(TaskState::Completed));
        assert_eq!(reply.text(), "the answer", "{binding} {version}");
    }
}

/// BR-039: a stream that breaks in the middle is taken up again.
#[tokio::test]
async fn br_039_a_cut_stream_is_taken_up() {
    for (binding, version) in ALL {
        let agent = Agent::start(version, |asked| match asked.operation {
            Operation::SendStreamingMessage(_) => Reply::Stream(
                vec![
                    StreamResponse::Task(task(TaskState::Working)),
                    piece("one ", false),
                ],
                End::Cut,
            ),
            _ => Reply::Stream(
                vec![
                    StreamResponse::Task(with_text(TaskState::Working, "one ")),
                    piece("two", true),
                    status(TaskState::Completed),
                ],
                End::Well,
            ),
        })
        .await;
        let client = agent.client(binding);
        let raw = client
            .send_streaming_message(call(), hello())
            .await
            .unwrap();
        let (_, error) = collect(raw).await;
        assert_eq!(
            cause(&error.unwrap()),
            Some(Cause::Cut),
            "{binding} {version}"
        );
        let (events, error) = collect(client.stream(call(), hello()).await.unwrap()).await;
        assert!(error.is_none(), "{binding} {version}: {error:?}");
        assert_eq!(task_text(&fold(&events)), "one two", "{binding} {version}");
        assert_eq!(agent.kinds().last(), Some(&OperationKind::SubscribeToTask));
    }
}

/// V03-06: a subscription that begins in the middle tells nothing of what was before.
#[tokio::test]
async fn v03_06_a_subscription_without_the_task_is_completed_by_asking_for_it() {
    for (binding, version) in ALL {
        let mut asked_for = 0;
        let agent = Agent::start(version, move |asked| match asked.operation {
            Operation::SendStreamingMessage(_) => Reply::Stream(
                vec![
                    StreamResponse::Task(task(TaskState::Working)),
                    piece("one ", false),
                ],
                End::Cut,
            ),
            Operation::SubscribeToTask(_) => Reply::Stream(
                vec![piece("three", true), status(TaskState::Completed)],
                End::Well,
            ),
            _ => {
                asked_for += 1;
                Reply::Outcome(Outcome::Task(match asked_for {
                    1 => with_text(TaskState::Working, "one two "),
                    _ => with_text(TaskState::Completed, "one two three"),
                }))
            }
        })
        .await;
        let client = agent.client(binding);
        for stream in [
            client.stream(call(), hello()).await,
            client.follow(call(), "t1").await,
        ] {
            let (events, error) = collect(stream.unwrap()).await;
            assert!(error.is_none(), "{binding} {version}: {error:?}");
            let folded = fold(&events);
            assert_eq!(task_text(&folded), "one two three", "{binding} {version}");
            assert_eq!(folded.status.state, TaskState::Completed);
        }
    }
}

/// BR-054, TRAP-03: "already ended" is no failure, whatever the agent calls it.
#[tokio::test]
async fn br_054_a_task_that_has_ended_is_given_as_it_is() {
    for (binding, version) in ALL {
        for kind in [
            ErrorKind::UnsupportedOperation,
            ErrorKind::InvalidParams,
            ErrorKind::TaskNotFound,
        ] {
            let agent = Agent::start(version, move |asked| match asked.operation {
                Operation::SubscribeToTask(_) => Reply::Error(A2aError::new(kind, "it has ended")),
                _ => Reply::Outcome(Outcome::Task(with_text(TaskState::Completed, "done"))),
            })
            .await;
            let stream = agent.client(binding).follow(call(), "t1").await;
            let (events, error) = collect(stream.unwrap()).await;
            assert!(error.is_none(), "{binding} {version} {kind:?}: {error:?}");
            assert_eq!(task_text(&fold(&events)), "done");
        }
    }
}

/// A pause ends the stream well; so does an end that the agent forgets to close after.
#[tokio::test]
async fn pauses_and_ends_are_told_from_cuts() {
    for (binding, version) in ALL {
        for (last, end, well) in [
            (TaskState::InputRequired, End::Well, true),
            (TaskState::AuthRequired, End::Well, true),
            (TaskState::Failed, End::Never, true),
            (TaskState::Working, End::Well, false),
        ] {
            let mut reply = Some(Reply::Stream(
                vec![StreamResponse::Task(task(TaskState::Working)), status(last)],
                end,
            ));
            let agent = Agent::start(version, move |_| reply.take().unwrap()).await;
            let stream = agent
                .client(binding)
                .send_streaming_message(call(), hello())
                .await;
            let (events, error) = collect(stream.unwrap()).await;
            assert_eq!(events.len(), 2, "{binding} {version} {last:?}");
            assert_eq!(
                error.is_none(),
                well,
                "{binding} {version} {last:?}: {error:?}"
            );
        }
    }
}

/// V03-04: 0.3 marks the last item, and not every agent closes after it. gRPC keeps to the end of
/// the stream.
#[tokio::test]
async fn a_final_pause_of_0_3_ends_a_stream_that_stays_open() {
    for binding in [Binding::JsonRpc, Binding::HttpJson] {
        let agent = Agent::start(Version::V0_3, |_| {
            let items = vec![
                StreamResponse::Task(task(TaskState::Working)),
                status(TaskState::InputRequired),
            ];
            Reply::Stream(items, End::Never)
        })
        .await;
        let client = agent.client(binding);
        let stream = client.send_streaming_message(call(), hello()).await;
        let (events, error) = collect(stream.unwrap()).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(events.len(), 2);
    }
}

/// BR-037, GRPC-09, ERR-04: refusals keep their kind, before a stream, in it, and without one.
#[tokio::test]
async fn br_037_errors_keep_their_kind_and_their_words() {
    for (binding, version) in ALL {
        for kind in [
            ErrorKind::TaskNotFound,
            ErrorKind::TaskNotCancelable,
            ErrorKind::PushNotificationNotSupported,
            ErrorKind::UnsupportedOperation,
            ErrorKind::ContentTypeNotSupported,
            ErrorKind::InvalidParams,
            ErrorKind::Internal,
        ] {
            let error = move || A2aError::new(kind, "as it is: 100 % 漢字");
            let agent = Agent::start(version, move |_| Reply::Error(error())).await;
            let client = agent.client(binding);
            let got = client.get_task(call(), GetTaskRequest::new("t1")).await;
            let stream = client.send_streaming_message(call(), hello()).await;
            let resuming = client.stream(call(), hello()).await;
            for refused in [got.err(), stream.err(), resuming.err()] {
                let refused = refused.unwrap();
                assert_eq!(refused.kind, kind, "{binding} {version}");
                assert_eq!(refused.message, "as it is: 100 % 漢字");
                assert_eq!(cause(&refused), None);
            }
            let agent = Agent::start(version, move |_| {
                let working = StreamResponse::Task(task(TaskState::Working));
                Reply::Stream(vec![working], End::Error(error()))
            })
            .await;
            let client = agent.client(binding);
            let stream = client.send_streaming_message(call(), hello()).await;
            let (events, late) = collect(stream.unwrap()).await;
            assert_eq!((events.len(), late.unwrap().kind), (1, kind));
        }
    }
}

#[tokio::test]
async fn br_037_a_stream_without_events_is_an_error() {
    for (binding, version) in ALL {
        let agent = Agent::start(version, |_| Reply::Stream(Vec::new(), End::Well)).await;
        let refused = agent.client(binding).stream(call(), hello()).await;
        let refused = refused.err().unwrap();
        assert_eq!(
            cause(&refused),
            Some(Cause::BadAnswer),
            "{binding} {version}"
        );
        let error = A2aError::new(ErrorKind::TaskNotFound, "gone");
        let mut reply = Some(Reply::Stream(Vec::new(), End::Error(error)));
        let agent = Agent::start(version, move |_| reply.take().unwrap()).await;
        let refused = agent.client(binding).stream(call(), hello()).await;
        assert_eq!(refused.err().unwrap().kind, ErrorKind::TaskNotFound);
    }
}

/// TEN-01: as declared, or not at all; 0.3 has no place for it.
#[tokio::test]
async fn ten_01_the_declared_tenant_goes_with_every_request() {
    for (binding, version) in ALL {
        for tenant in [None, Some("ac me")] {
            let agent = Agent::start(version, obliging).await;
            let mut card = agent.card(binding);
            card.supported_interfaces[0].tenant = tenant.map(str::to_owned);
            let client = builder().build(card).unwrap();
            client.send_message(call(), hello()).await.unwrap();
            let asked = CancelTaskRequest::new("t1");
            client.cancel_task(call(), asked).await.unwrap();
            let expected = tenant.filter(|_| version == Version::V1_0);
            for asked in agent.asked() {
                assert_eq!(asked.operation.tenant(), expected, "{binding} {version}");
            }
        }
    }
}

/// BR-143: what is attached arrives as it was attached, through both forms of 0.3 too (V03-GRPC-02).
#[tokio::test]
async fn br_143_attachments_keep_name_media_type_and_bytes() {
    for (binding, version) in ALL {
        let agent = Agent::start(version, obliging).await;
        let parts = vec![
            Part::text("look"),
            Part::raw(vec![0x89, b'P', 0xff])
                .with_filename("a.png")
                .with_media_type("image/png"),
            Part::url("https://h.example/r.pdf")
                .with_filename("r.pdf")
                .with_media_type("application/pdf"),
            Part::data(json!({"n": 1, "x": null})),
        ];
        let message = Message::user("m1", parts.clone());
        let request = nuncio_protocol::SendMessageRequest::new(message);
        let client = agent.client(binding);
        client.send_message(call(), request).await.unwrap();
        let Operation::SendMessage(asked) = &agent.asked()[0].operation else {
            panic!("another operation");
        };
        assert_eq!(
            asked.message.as_ref().unwrap().parts,
            parts,
            "{binding} {version}"
        );
    }
}

/// V03-07: what a version cannot ask for is left out here.
#[tokio::test]
async fn no_more_history_comes_than_was_asked_for() {
    for (binding, version) in ALL {
        let agent = Agent::start(version, |_| {
            let mut task = task(TaskState::Completed);
            task.history = (0..3)
                .map(|n| Message::user(format!("m{n}"), vec![Part::text("x")]))
                .collect();
            Reply::Outcome(Outcome::Task(task))
        })
        .await;
        let client = agent.client(binding);
        for (asked, expected) in [(None, 3), (Some(0), 0), (Some(2), 2), (Some(9), 3)] {
            let mut request = GetTaskRequest::new("t1");
            request.history_length = asked;
            let task = client.get_task(call(), request).await.unwrap();
            assert_eq!(
                task.history.len(),
                expected,
                "{binding} {version} {asked:?}"
            );
            let last = task
                .history
                .last()
                .map(|message| message.message_id.as_str());
            assert_eq!(last, (expected > 0).then_some("m2"));
        }
    }
}

/// BR-157: an agent that accepts and says nothing.
#[tokio::test]
async fn br_157_the_total_limit_is_told() {
    for (binding, version) in ALL {
        let agent = Agent::start(version, |_| {
            let working = StreamResponse::Task(task(TaskState::Working));
            Reply::Stream(vec![working], End::Never)
        })
        .await;
        let client = agent.client(binding);
        let mut call = call();
        call.timeout = Some(Duration::from_secs(7));
        let stream = client.send_streaming_message(call, hello()).await.unwrap();
        tokio::time::pause();
        let (_, error) = collect(stream).await;
        let error = error.unwrap();
        assert_eq!(
            cause(&error),
            Some(Cause::TotalTimeout),
            "{binding} {version}"
        );
        tokio::time::resume();
        let told = agent.asked()[0].header("grpc-timeout").map(str::to_owned);
        assert_eq!(told.is_some(), binding == Binding::Grpc);
    }
}
