//! Version 0.3 both ways: what comes back differs by the losses listed in `v0_3`, and by no others
//! (MAP-01).

use nuncio_protocol::dialect::{JsonRpcDialect, RestDialect, StreamKind};
use nuncio_protocol::v0_3::{V0_3, card};
use nuncio_protocol::{
    AgentCard, AgentInterface, ErrorKind, Event, Message, Metadata, OAuthFlows, Operation,
    OperationKind, Outcome, Part, PartContent, Role, SecurityScheme, SendMessageConfiguration,
    SendMessageResponse, StreamResponse, Task,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::{
    BoxedStrategy, Just, ProptestConfig, Strategy, TestCaseError, any, prop_assert_eq, prop_oneof,
    proptest,
};
use proptest::sample::select;
use serde_json::{Value, json};

use crate::strategies;
use crate::support::as_older_webhook;

/// Which form of 0.3 a value went through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    JsonRpc,
    Rest,
}

const BOTH: [Through; 2] = [Through::JsonRpc, Through::Rest];

/// What comes back of values of 1.0.
impl Through {
    fn part(self, part: &mut Part) {
        match &part.content {
            PartContent::Raw(_) | PartContent::Url(_) => return,
            PartContent::Data(data) if !data.is_object() => {
                part.metadata = part.metadata.take().filter(|metadata| !metadata.is_empty());
            }
            PartContent::Text(_) | PartContent::Data(_) => {}
        }
        part.filename = None;
        part.media_type = None;
    }

    fn message(self, message: &mut Message) {
        message.parts.iter_mut().for_each(|part| self.part(part));
        match self {
            Self::JsonRpc if message.role == Role::Unspecified => message.role = Role::Agent,
            Self::JsonRpc => {}
            Self::Rest => message.reference_task_ids.clear(),
        }
    }

    fn task(self, task: &mut Task) {
        if let Some(message) = &mut task.status.message {
            self.message(message);
        }
        task.history.iter_mut().for_each(|said| self.message(said));
        let artifacts = task.artifacts.iter_mut();
        artifacts
            .flat_map(|artifact| artifact.parts.iter_mut())
            .for_each(|part| self.part(part));
    }

    fn item(self, mut item: StreamResponse) -> StreamResponse {
        match &mut item {
            StreamResponse::Task(task) => self.task(task),
            StreamResponse::Message(message) => self.message(message),
            StreamResponse::StatusUpdate(update) => {
                if let Some(message) = &mut update.status.message {
                    self.message(message);
                }
            }
            StreamResponse::ArtifactUpdate(update) => {
                let parts = &mut update.artifact.parts;
                parts.iter_mut().for_each(|part| self.part(part));
            }
            other => panic!("{other:?}"),
        }
        item
    }

    fn operation(self, mut operation: Operation) -> Operation {
        operation.set_tenant(None);
        match &mut operation {
            Operation::SendMessage(request) | Operation::SendStreamingMessage(request) => {
                if let Some(message) = &mut request.message {
                    self.message(message);
                }
                if self == Self::Rest && request.configuration.is_none() {
                    request.configuration = Some(SendMessageConfiguration::default());
                }
                if let Some(configuration) = &mut request.configuration
                    && let Some(webhook) = &mut configuration.task_push_notification_config
                {
                    as_older_webhook(webhook);
                    webhook.task_id = None;
                }
            }
            Operation::CreateTaskPushNotificationConfig(webhook) => as_older_webhook(webhook),
            Operation::ListTaskPushNotificationConfigs(request) if self == Self::JsonRpc => {
                request.page_size = 0;
                request.page_token = None;
            }
            _ => {}
        }
        operation
    }

    /// Writes an operation and reads it again.
    fn sent(self, operation: &Operation) -> Result<Operation, nuncio_protocol::A2aError> {
        if self == Self::JsonRpc {
            let params = V0_3.encode_params(operation)?;
            return V0_3.decode_params(operation.kind(), &params);
        }
        let request = RestDialect::encode_request(&V0_3, operation)?;
        let (path, query) = match request.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (request.target.as_str(), None),
        };
        let route = V0_3.route(request.method, path).unwrap();
        assert_eq!(route.kind, operation.kind());
        V0_3.decode_request(&route, query, request.body.unwrap_or_default().as_bytes())
    }

    fn encode(self, kind: OperationKind, outcome: &Outcome) -> String {
        match self {
            Self::JsonRpc => JsonRpcDialect::encode_result(&V0_3, kind, outcome),
            Self::Rest => RestDialect::encode_result(&V0_3, kind, outcome),
        }
        .unwrap()
    }

    fn decode(self, kind: OperationKind, result: &str) -> Outcome {
        match self {
            Self::JsonRpc => JsonRpcDialect::decode_result(&V0_3, kind, result),
            Self::Rest => RestDialect::decode_result(&V0_3, kind, result.as_bytes()),
        }
        .unwrap_or_else(|error| panic!("{error} in {result}"))
    }

    fn event(self, event: &Event, stream: StreamKind) -> String {
        match self {
            Self::JsonRpc => JsonRpcDialect::encode_event(&V0_3, event, stream),
            Self::Rest => RestDialect::encode_event(&V0_3, event, stream),
        }
        .into_owned()
    }

    fn read_event(self, text: &str) -> Option<StreamResponse> {
        match self {
            Self::JsonRpc => JsonRpcDialect::decode_event(&V0_3, text),
            Self::Rest => RestDialect::decode_event(&V0_3, text.as_bytes()),
        }
        .unwrap_or_else(|error| panic!("{error} in {text}"))
    }
}

fn lacks_role(operation: &Operation) -> bool {
    let (Operation::SendMessage(request) | Operation::SendStreamingMessage(request)) = operation
    else {
        return false;
    };
    let message = request.message.as_ref();
    message.is_some_and(|message| message.role == Role::Unspecified)
}

/// What comes back of a card.
fn older_card(mut card: AgentCard) -> AgentCard {
    let mut kept: Vec<AgentInterface> = Vec::new();
    for mut interface in card.supported_interfaces {
        if interface.protocol_version != "0.3" || interface.url.is_empty() {
            continue;
        }
        if interface.protocol_binding.is_empty() {
            interface.protocol_binding = "JSONRPC".to_owned();
        }
        interface.tenant = None;
        if !kept.contains(&interface) {
            kept.push(interface);
        }
    }
    card.supported_interfaces = kept;
    for scheme in card.security_schemes.0.values_mut() {
        let SecurityScheme::OAuth2(oauth) = scheme else {
            continue;
        };
        match &mut oauth.flows {
            Some(OAuthFlows::DeviceCode(_)) => oauth.flows = None,
            Some(OAuthFlows::AuthorizationCode(flow)) => flow.pkce_required = false,
            _ => {}
        }
    }
    card.signatures.clear();
    card
}

/// A card of which some interfaces are of version 0.3.
fn card_with_older() -> impl Strategy<Value = AgentCard> {
    (strategies::card(), vec(any::<bool>(), 3)).prop_map(|(mut card, older)| {
        for (interface, older) in card.supported_interfaces.iter_mut().zip(older) {
            if older {
                interface.protocol_version = "0.3".to_owned();
            }
        }
        card
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn operations_come_back_but_for_the_losses(operation in strategies::operation()) {
        for through in BOTH {
            let sent = through.sent(&operation);
            if matches!(operation, Operation::ListTasks(_)) {
                prop_assert_eq!(sent.unwrap_err().kind, ErrorKind::UnsupportedOperation);
            } else if lacks_role(&operation) && through == Through::JsonRpc {
                prop_assert_eq!(sent.unwrap_err().kind, ErrorKind::UnsupportedOperation);
            } else {
                prop_assert_eq!(sent.unwrap(), through.operation(operation.clone()));
            }
        }
    }

    /// TRAP-33: and what is final does not change what is read.
    #[test]
    fn events_come_back_but_for_the_losses(item in strategies::stream_response()) {
        let event = Event::from(item.clone());
        for through in BOTH {
            for stream in [StreamKind::Send, StreamKind::Subscription] {
                let text = through.event(&event, stream);
                prop_assert_eq!(through.read_event(&text), Some(through.item(item.clone())));
            }
        }
    }

    #[test]
    fn answers_come_back_but_for_the_losses(sent in strategies::send_response()) {
        let item = match sent.clone() {
            SendMessageResponse::Task(task) => StreamResponse::Task(task),
            SendMessageResponse::Message(message) => StreamResponse::Message(message),
            other => panic!("{other:?}"),
        };
        for through in BOTH {
            let text = through.encode(OperationKind::SendMessage, &Outcome::Sent(sent.clone()));
            let Outcome::Sent(read) = through.decode(OperationKind::SendMessage, &text) else {
                panic!("{text}");
            };
            let read = match read {
                SendMessageResponse::Task(task) => StreamResponse::Task(task),
                SendMessageResponse::Message(message) => StreamResponse::Message(message),
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(read, through.item(item.clone()));
        }
    }

    #[test]
    fn pages_come_back_but_for_the_losses(page in strategies::list_response()) {
        let mut expected = page.clone();
        expected.tasks.iter_mut().for_each(|task| Through::Rest.task(task));
        let text = Through::Rest.encode(OperationKind::ListTasks, &Outcome::Tasks(page));
        let Outcome::Tasks(read) = Through::Rest.decode(OperationKind::ListTasks, &text) else {
            panic!("{text}");
        };
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn webhooks_come_back_but_for_the_losses(list in strategies::push_configs()) {
        let kind = OperationKind::ListTaskPushNotificationConfigs;
        for through in BOTH {
            let mut expected = list.clone();
            expected.configs.iter_mut().for_each(as_older_webhook);
            if through == Through::JsonRpc {
                expected.next_page_token = None;
            }
            let text = through.encode(kind, &Outcome::PushConfigs(list.clone()));
            let Outcome::PushConfigs(read) = through.decode(kind, &text) else {
                panic!("{text}");
            };
            prop_assert_eq!(read, expected);
        }
    }

    #[test]
    fn cards_come_back_but_for_the_losses(card in card_with_older()) {
        let shown = card::encode(&card);
        prop_assert_eq!(card::decode(&shown).unwrap(), older_card(card));
    }

    /// MAP-02: nothing of 1.0 is lost but the signatures.
    #[test]
    fn union_cards_lose_nothing(card in card_with_older()) {
        let shown = card::union(&card);
        let mut expected = card;
        expected.signatures.clear();
        let newer: AgentCard = serde_json::from_value(shown.clone()).unwrap();
        prop_assert_eq!(&newer, &expected);
        if !expected.supported_interfaces.is_empty() {
            let both = card::decode(&shown).unwrap();
            let known = expected.supported_interfaces.len();
            let added = &both.supported_interfaces[known..];
            let doubtful = |i: &AgentInterface| i.protocol_binding == "JSONRPC";
            proptest::prop_assert!(added.iter().all(doubtful), "{:?}", added);
        }
    }

    /// 0.3 to 1.0 and back.
    #[test]
    fn older_items_come_back_but_for_the_losses(item in older_item()) {
        let text = item.to_string();
        let read = Through::JsonRpc.read_event(&text).unwrap();
        let event = Event::from(read);
        let written = Through::JsonRpc.event(&event, StreamKind::Send);
        same(&written, &newer_item(item))?;
    }

    #[test]
    fn older_requests_come_back_but_for_the_losses(params in older_params()) {
        let kind = OperationKind::SendMessage;
        let read = V0_3.decode_params(kind, &params.to_string()).unwrap();
        let written = V0_3.encode_params(&read).unwrap();
        same(&written, &newer_params(params))?;
    }

    #[test]
    fn no_json_harms_a_reader(value in strategies::json()) {
        let text = value.to_string();
        for kind in OperationKind::ALL {
            let _ = V0_3.decode_params(*kind, &text);
            let _ = JsonRpcDialect::decode_result(&V0_3, *kind, &text);
            let _ = RestDialect::decode_result(&V0_3, *kind, text.as_bytes());
        }
        let _ = JsonRpcDialect::decode_event(&V0_3, &text);
        let _ = RestDialect::decode_event(&V0_3, text.as_bytes());
        let _ = card::decode(&value);
    }
}

fn same(written: &str, expected: &Value) -> Result<(), TestCaseError> {
    let written: Value = serde_json::from_str(written).unwrap();
    prop_assert_eq!(&written, expected);
    Ok(())
}

/// An object of these members, each there or not.
fn object(
    required: Vec<(&'static str, BoxedStrategy<Value>)>,
    optional: Vec<(&'static str, BoxedStrategy<Value>)>,
) -> BoxedStrategy<Value> {
    let (needed, needed_values): (Vec<_>, Vec<_>) = required.into_iter().unzip();
    let (names, values): (Vec<_>, Vec<_>) = optional.into_iter().unzip();
    let values: Vec<_> = values.into_iter().map(option::of).collect();
    (needed_values, values)
        .prop_map(move |(needed_values, values)| {
            let needed = needed.iter().copied().zip(needed_values);
            let set = names.iter().copied().zip(values);
            let set = set.filter_map(|(name, value)| Some((name, value?)));
            let members = needed
                .chain(set)
                .map(|(name, value)| (name.to_owned(), value));
            Value::Object(members.collect())
        })
        .boxed()
}

fn word() -> BoxedStrategy<Value> {
    strategies::word().prop_map(Value::from).boxed()
}

fn free() -> BoxedStrategy<Value> {
    strategies::json()
        .prop_map(|value| match value {
            Value::Object(object) => Value::Object(object),
            other => json!({ "x": other }),
        })
        .boxed()
}

fn fixed(value: impl Into<Value>) -> BoxedStrategy<Value> {
    Just(value.into()).boxed()
}

fn list(item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    vec(item, 1..3).prop_map(Value::from).boxed()
}

/// Parts in 0.3's schema, also without `kind`.
fn older_part() -> BoxedStrategy<Value> {
    let kind = |name: &'static str| vec![("kind", fixed(name)), ("metadata", free())];
    let file = |content: (&'static str, BoxedStrategy<Value>)| {
        object(vec![content], vec![("mimeType", word()), ("name", word())])
    };
    let bytes = fixed("aGVsbG8=");
    prop_oneof![
        object(vec![("text", word())], kind("text")),
        object(vec![("data", free())], kind("data")),
        object(vec![("file", file(("uri", word())))], kind("file")),
        object(vec![("file", file(("bytes", bytes)))], kind("file")),
    ]
    .boxed()
}

fn older_message() -> BoxedStrategy<Value> {
    let role = select(vec!["user", "agent"]).prop_map(Value::from).boxed();
    object(
        vec![
            ("kind", fixed("message")),
            ("messageId", word()),
            ("role", role),
            ("parts", list(older_part())),
        ],
        vec![
            ("contextId", word()),
            ("taskId", word()),
            ("metadata", free()),
            ("extensions", list(word())),
            ("referenceTaskIds", list(word())),
        ],
    )
}

fn older_status() -> BoxedStrategy<Value> {
    let states = vec![
        "submitted",
        "working",
        "input-required",
        "completed",
        "canceled",
        "failed",
        "rejected",
        "auth-required",
        "unknown",
    ];
    let state = select(states).prop_map(Value::from).boxed();
    let times = vec!["2025-10-28T10:30:00.000Z", "2025-10-28T10:30:00"];
    let time = select(times).prop_map(Value::from).boxed();
    object(
        vec![("state", state)],
        vec![("message", older_message()), ("timestamp", time)],
    )
}

fn older_artifact() -> BoxedStrategy<Value> {
    object(
        vec![("artifactId", word()), ("parts", list(older_part()))],
        vec![
            ("name", word()),
            ("description", word()),
            ("metadata", free()),
            ("extensions", list(word())),
        ],
    )
}

fn older_item() -> BoxedStrategy<Value> {
    let flag = || any::<bool>().prop_map(Value::from).boxed();
    let ids = || vec![("taskId", word()), ("contextId", word())];
    let task = object(
        vec![
            ("kind", fixed("task")),
            ("id", word()),
            ("contextId", word()),
            ("status", older_status()),
        ],
        vec![
            ("artifacts", list(older_artifact())),
            ("history", list(older_message())),
            ("metadata", free()),
        ],
    );
    let mut status = ids();
    status.extend([
        ("kind", fixed("status-update")),
        ("status", older_status()),
        ("final", flag()),
    ]);
    let mut artifact = ids();
    artifact.extend([
        ("kind", fixed("artifact-update")),
        ("artifact", older_artifact()),
    ]);
    let pieces = vec![
        ("append", fixed(true)),
        ("lastChunk", fixed(true)),
        ("metadata", free()),
    ];
    prop_oneof![
        task,
        older_message(),
        object(status, vec![("metadata", free())]),
        object(artifact, pieces),
    ]
    .boxed()
}

fn older_params() -> BoxedStrategy<Value> {
    let schemes = vec![
        json!(["Bearer"]),
        json!(["HOBA", "Basic", "Bearer"]),
        json!(["HOBA", "Digest"]),
    ];
    let schemes = select(schemes).boxed();
    let authentication = object(vec![("schemes", schemes)], vec![("credentials", word())]);
    let webhook = object(
        vec![("url", word())],
        vec![
            ("id", word()),
            ("token", word()),
            ("authentication", authentication),
        ],
    );
    let length = any::<i32>().prop_map(Value::from).boxed();
    let configuration = object(
        vec![],
        vec![
            ("acceptedOutputModes", list(word())),
            ("historyLength", length),
            ("pushNotificationConfig", webhook),
            ("blocking", any::<bool>().prop_map(Value::from).boxed()),
        ],
    );
    object(
        vec![("message", older_message())],
        vec![("configuration", configuration), ("metadata", free())],
    )
}

/// What comes back of values of 0.3.
fn newer_item(mut item: Value) -> Value {
    if item["final"].is_boolean() {
        let ends = [
            "completed",
            "canceled",
            "failed",
            "rejected",
            "input-required",
        ];
        let state = item["status"]["state"].as_str().unwrap();
        item["final"] = ends.contains(&state).into();
    }
    each_object(&mut item, &|object| {
        let zoneless = object.get("timestamp") == Some(&json!("2025-10-28T10:30:00"));
        if zoneless {
            let utc = "2025-10-28T10:30:00.000Z";
            object.insert("timestamp".to_owned(), utc.into());
        }
    });
    item
}

fn newer_params(params: Value) -> Value {
    let mut params = newer_item(params);
    if let Some(configuration) = params["configuration"].as_object_mut() {
        configuration.entry("blocking").or_insert(Value::Bool(true));
    }
    let schemes =
        params.pointer_mut("/configuration/pushNotificationConfig/authentication/schemes");
    if let Some(schemes) = schemes {
        let kept = ["Bearer", "Basic", "HOBA"];
        let list = schemes.as_array().unwrap();
        let known = list
            .iter()
            .find(|scheme| kept[..2].contains(&scheme.as_str().unwrap()));
        *schemes = json!([known.unwrap_or(&list[0])]);
    }
    if params["configuration"].is_null() {
        params.as_object_mut().unwrap().remove("configuration");
    }
    params
}

/// Changes every object outside of `metadata` and of data, and writes `kind` of parts.
fn each_object(value: &mut Value, change: &dyn Fn(&mut Metadata)) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|item| each_object(item, change)),
        Value::Object(object) => {
            change(object);
            for kind in ["text", "file", "data"] {
                if object.contains_key(kind) && !object.contains_key("kind") {
                    object.insert("kind".to_owned(), kind.into());
                }
            }
            let inner = object
                .iter_mut()
                .filter(|(name, _)| !matches!(name.as_str(), "metadata" | "data"));
            inner.for_each(|(_, inner)| each_object(inner, change));
        }
        _ => {}
    }
}
