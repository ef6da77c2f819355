//! BR-159: every optional field absent, null or empty, over both bindings and in streams.

use nuncio_client::{TextView, task_text};
use nuncio_protocol::{
    AgentService as _, GetTaskRequest, SendMessageResponse, StreamResponse, Task,
};
use proptest::prelude::{
    BoxedStrategy, Just, ProptestConfig, Strategy, prop, prop_assert, prop_oneof, proptest,
};
use serde_json::{Map, Value, json};

use crate::support::{BINDINGS, Fake, Request, call, collect, hello};

/// A member that is absent, null, empty, or there.
fn member(empty: Value, full: Value) -> BoxedStrategy<Option<Value>> {
    prop_oneof![
        Just(None),
        Just(Some(Value::Null)),
        Just(Some(empty)),
        Just(Some(full))
    ]
    .boxed()
}

fn object(members: Vec<(&'static str, Option<Value>)>) -> Value {
    let there = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(Map::from_iter(there))
}

fn message() -> BoxedStrategy<Value> {
    let part = json!([{"text": "t", "metadata": null, "filename": null, "mediaType": ""}]);
    (
        member(json!(""), json!("m")),
        member(json!(""), json!("c")),
        member(json!(""), json!("t1")),
        member(json!(""), json!("ROLE_AGENT")),
        member(json!([]), part),
        member(json!({}), json!({"k": [1, null]})),
        member(json!([]), json!(["https://x.example/e"])),
        member(json!([]), json!(["t0"])),
    )
        .prop_map(
            |(id, context, task, role, parts, metadata, extensions, references)| {
                object(vec![
                    ("messageId", id),
                    ("contextId", context),
                    ("taskId", task),
                    ("role", role),
                    ("parts", parts),
                    ("metadata", metadata),
                    ("extensions", extensions),
                    ("referenceTaskIds", references),
                ])
            },
        )
        .boxed()
}

fn status() -> BoxedStrategy<Value> {
    (
        member(json!("TASK_STATE_NEW_IN_2_0"), json!("TASK_STATE_WORKING")),
        prop_oneof![
            Just(None),
            Just(Some(Value::Null)),
            message().prop_map(Some)
        ],
        member(Value::Null, json!("2026-01-01T00:00:00Z")),
    )
        .prop_map(|(state, message, timestamp)| {
            object(vec![
                ("state", state),
                ("message", message),
                ("timestamp", timestamp),
            ])
        })
        .boxed()
}

fn artifact() -> BoxedStrategy<Value> {
    (
        member(json!(""), json!("a")),
        member(json!(""), json!("name")),
        member(json!(""), json!("what it is")),
        member(
            json!([]),
            json!([{"text": ""}, {"data": null}, {"url": "u", "filename": null}]),
        ),
        member(json!({}), json!({"k": 1})),
        member(json!([]), json!(["e"])),
    )
        .prop_map(|(id, name, description, parts, metadata, extensions)| {
            object(vec![
                ("artifactId", id),
                ("name", name),
                ("description", description),
                ("parts", parts),
                ("metadata", metadata),
                ("extensions", extensions),
            ])
        })
        .boxed()
}

fn some_or_null(inner: BoxedStrategy<Value>) -> BoxedStrategy<Option<Value>> {
    prop_oneof![Just(None), Just(Some(Value::Null)), inner.prop_map(Some)].boxed()
}

fn task() -> BoxedStrategy<Value> {
    let artifacts = prop::collection::vec(artifact(), 0..3).prop_map(Value::Array);
    let history = prop::collection::vec(message(), 0..2).prop_map(Value::Array);
    (
        member(json!(""), json!("t1")),
        member(json!(""), json!("c")),
        some_or_null(status()),
        some_or_null(artifacts.boxed()),
        some_or_null(history.boxed()),
        member(json!({}), json!({"k": 1})),
    )
        .prop_map(|(id, context, status, artifacts, history, metadata)| {
            object(vec![
                ("id", id),
                ("contextId", context),
                ("status", status),
                ("artifacts", artifacts),
                ("history", history),
                ("metadata", metadata),
            ])
        })
        .boxed()
}

fn event() -> BoxedStrategy<Value> {
    let flag = || member(json!(false), json!(true));
    let update = (
        member(json!(""), json!("t1")),
        member(json!(""), json!("c")),
        some_or_null(status()),
        some_or_null(artifact()),
        flag(),
        flag(),
        member(json!({}), json!({"k": 1})),
    )
        .prop_map(
            |(task, context, status, artifact, append, last, metadata)| {
                object(vec![
                    ("taskId", task),
                    ("contextId", context),
                    ("status", status),
                    ("artifact", artifact),
                    ("append", append),
                    ("lastChunk", last),
                    ("metadata", metadata),
                ])
            },
        );
    let kind = prop::sample::select(vec!["statusUpdate", "artifactUpdate"]);
    (kind, update)
        .prop_map(|(kind, update)| json!({kind: update}))
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn br_159_answers_with_holes_are_read_and_folded(
        task in task(),
        message in message(),
        events in prop::collection::vec(event(), 0..5),
    ) {
        let mut read: Task = serde_json::from_value(task).unwrap();
        let sent: SendMessageResponse = serde_json::from_value(json!({"message": message})).unwrap();
        prop_assert!(matches!(sent, SendMessageResponse::Message(_)));
        let mut view = TextView::new();
        view.apply(&StreamResponse::Task(read.clone()));
        for event in events {
            let event: StreamResponse = serde_json::from_value(event).unwrap();
            read.apply_leniently(&event);
            view.apply(&event);
        }
        let _ = task_text(&read);
    }
}

#[tokio::test]
async fn br_159_holes_over_the_wire() {
    for binding in BINDINGS {
        for hole in [
            json!({"id": "t1"}),
            json!({"id": "t1", "status": null, "artifacts": null, "contextId": null}),
        ] {
            let whole = hole.clone();
            let fake = Fake::start(move |request: &Request| match request.operation().as_str() {
                "SendStreamingMessage" => request.stream(&[
                    (0, json!({"task": whole})),
                    (0, json!({"artifactUpdate": {"artifact": {"artifactId": "a", "parts": null}, "append": true}})),
                    (0, json!({"statusUpdate": {"status": null}})),
                    (0, json!({"statusUpdate": {"taskId": "t1", "status": {"state": "TASK_STATE_COMPLETED", "message": null}}})),
                ]),
                _ => request.ok(&whole),
            })
            .await;
            let client = fake.client(binding, true);
            let task = client
                .get_task(call(), GetTaskRequest::new("t1"))
                .await
                .unwrap();
            assert_eq!(task.id, "t1".into());
            let (events, error) = collect(client.stream(call(), hello()).await.unwrap()).await;
            assert!(error.is_none(), "{error:?}");
            assert_eq!(events.len(), 4, "{hole}");
        }
    }
}
