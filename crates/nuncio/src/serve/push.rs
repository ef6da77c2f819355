//! Webhooks as administrators see them: `/admin/v1/push`.

use http::{Method, StatusCode};
use nuncio_engine::{TestCall, Webhooks};
use nuncio_protocol::{A2aError, ErrorKind, TaskId, Timestamp};
use nuncio_server::{AdminReply, AdminRequest};
use nuncio_store::{
    CallRecord, DeadLetter, Delivery, DeliveryFilter, Redelivery, StoreError, WebhookId,
};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

/// Webhooks of a page, if nothing else is asked for, and at most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;

/// Calls and dead letters shown of one webhook.
const SHOWN: usize = 100;

type Answer = Result<AdminReply, A2aError>;

/// What a redelivery may say.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Wanted {
    position: Option<u64>,
    since: Option<String>,
}

/// Answers a request at a path below `/admin/v1/push`.
pub(super) async fn answer(webhooks: &Webhooks, below: &str, request: AdminRequest) -> Answer {
    let path = below.trim_matches('/');
    let segments: Vec<String> = match path {
        "" => Vec::new(),
        path => path.split('/').map(decoded).collect::<Result<_, _>>()?,
    };
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    match (&request.method, &segments[..]) {
        (&Method::GET, []) => list(webhooks, &request.query).await,
        (&Method::POST, ["recover"]) => recover(webhooks, &request.body).await,
        (&Method::GET, [task, config]) => show(webhooks, &named(task, config)).await,
        (&Method::POST, [task, config, "redeliver"]) => {
            redeliver(webhooks, named(task, config), &request.body).await
        }
        (&Method::POST, [task, config, "test"]) => test(webhooks, &named(task, config)).await,
        (_, [] | [_, _]) => Err(not_allowed("GET")),
        (_, ["recover"] | [_, _, "redeliver" | "test"]) => Err(not_allowed("POST")),
        _ => Err(A2aError::new(ErrorKind::MethodNotFound, "no such path")),
    }
}

async fn list(webhooks: &Webhooks, query: &str) -> Answer {
    let (mut filter, mut size) = (DeliveryFilter::default(), PAGE);
    let (mut after_task, mut after_config) = (None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let wrong = |why: &str| Err(A2aError::invalid_field(name.as_ref(), why));
        match &*name {
            "task" => filter.task = Some(TaskId::from(&*value)),
            "trouble" => match &*value {
                "true" => filter.in_trouble = true,
                "false" => filter.in_trouble = false,
                _ => return wrong("is true or false"),
            },
            "limit" => match value.parse() {
                Ok(limit) if (1..=MAX_PAGE).contains(&limit) => size = limit,
                _ => return wrong("is a number from 1 to 1000"),
            },
            "afterTask" => after_task = Some(value.into_owned()),
            "afterConfig" => after_config = Some(value.into_owned()),
            _ => return wrong("is not known here"),
        }
    }
    let after = match (after_task, after_config) {
        (None, None) => None,
        (Some(task), Some(config)) => Some(named(&task, &config)),
        (None, _) => return Err(A2aError::invalid_field("afterTask", "is missing")),
        (_, None) => return Err(A2aError::invalid_field("afterConfig", "is missing")),
    };
    let page = webhooks.list(&filter, after.as_ref(), size).await;
    let page = page.map_err(unreadable)?;
    let next = page.last().filter(|_| page.len() == size).map(|last| {
        let id = last.id();
        json!({"task": id.task, "config": id.config})
    });
    let shown: Vec<Value> = page.iter().map(shown).collect();
    let mut body = json!({ "webhooks": shown });
    if let Some(next) = next {
        body["next"] = next;
    }
    Ok(good(body))
}

async fn show(webhooks: &Webhooks, id: &WebhookId) -> Answer {
    let delivery = webhooks.get(id).await.map_err(unreadable)?;
    let delivery = delivery.ok_or_else(|| unknown(id))?;
    let calls = webhooks.calls(id, SHOWN).await.map_err(unreadable)?;
    let letters = webhooks.dead_letters(id, SHOWN).await.map_err(unreadable)?;
    let mut body = shown(&delivery);
    body["letters"] = letters.iter().map(shown_letter).collect();
    body["calls"] = calls.iter().map(shown_call).collect();
    Ok(good(body))
}

async fn redeliver(webhooks: &Webhooks, id: WebhookId, body: &[u8]) -> Answer {
    let wanted = read(body)?;
    if webhooks.get(&id).await.map_err(unreadable)?.is_none() {
        return Err(unknown(&id));
    }
    let which = Redelivery {
        webhook: Some(id),
        position: wanted.position,
        since: wanted.since.as_deref().map(time).transpose()?,
    };
    mark(webhooks, &which).await
}

async fn recover(webhooks: &Webhooks, body: &[u8]) -> Answer {
    let wanted = read(body)?;
    if wanted.position.is_some() {
        return Err(A2aError::invalid_field(
            "position",
            "belongs to one webhook",
        ));
    }
    let since = wanted.since.as_deref();
    let since = since.ok_or_else(|| A2aError::invalid_field("since", "is required"))?;
    let which = Redelivery {
        since: Some(time(since)?),
        ..Redelivery::default()
    };
    mark(webhooks, &which).await
}

async fn mark(webhooks: &Webhooks, which: &Redelivery) -> Answer {
    let letters = webhooks.redeliver(which).await.map_err(unreadable)?;
    tracing::info!(letters, "dead letters of webhooks are delivered again");
    Ok(AdminReply {
        status: StatusCode::ACCEPTED,
        body: json!({ "letters": letters }),
    })
}

async fn test(webhooks: &Webhooks, id: &WebhookId) -> Answer {
    let tried = webhooks.test(id).await.map_err(unreadable)?;
    let tried = tried.ok_or_else(|| unknown(id))?;
    let TestCall {
        message_id,
        at,
        took,
        outcome,
        ..
    } = tried;
    Ok(good(json!({
        "webhookId": message_id,
        "at": at,
        "tookMs": took.as_millis() as u64,
        "outcome": outcome.word(),
        "taken": outcome.is_taken(),
    })))
}

/// A webhook without its secrets.
fn shown(delivery: &Delivery) -> Value {
    let Delivery {
        scope,
        webhook,
        cursor,
        last,
        state,
        dead,
        requested,
        ..
    } = delivery;
    let standing = match state.disabled {
        Some(_) => "disabled",
        None if state.failing_since.is_some() => "failing",
        None if cursor < last || *requested > 0 => "delivering",
        None => "idle",
    };
    let id = delivery.id();
    json!({
        "task": id.task,
        "config": id.config,
        "workspace": scope.workspace,
        "agent": scope.agent,
        "caller": scope.caller,
        "url": without_query(&webhook.config.url),
        "version": webhook.version.as_str(),
        "state": standing,
        "disabled": state.disabled.map(|reason| reason.as_str()),
        "delivered": cursor,
        "newest": last,
        "attempts": state.attempts,
        "failingSince": state.failing_since,
        "lastCall": state.last_call,
        "nextCall": state.next_call.filter(|_| state.disabled.is_none()),
        "deadLetters": dead,
        "redelivering": requested,
    })
}

/// An address without what may be a secret in it.
fn without_query(url: &str) -> String {
    let Ok(mut url) = Url::parse(url) else {
        return String::new();
    };
    if url.query().is_some() {
        url.set_query(Some("***"));
    }
    url.set_fragment(None);
    url.into()
}

fn shown_letter(letter: &DeadLetter) -> Value {
    json!({
        "position": letter.position,
        "givenUp": letter.given_up,
        "attempts": letter.attempts,
        "outcome": letter.cause,
        "redelivering": letter.requested,
    })
}

fn shown_call(call: &CallRecord) -> Value {
    json!({
        "at": call.at,
        "tookMs": call.took.as_millis() as u64,
        "webhookId": call.message_id,
        "first": call.first,
        "last": call.last,
        "attempt": call.attempt,
        "outcome": call.outcome.word(),
        "taken": call.outcome.is_taken(),
    })
}

/// Reads what is wanted; nothing at all is fine.
fn read(body: &[u8]) -> Result<Wanted, A2aError> {
    if body.is_empty() {
        return Ok(Wanted::default());
    }
    let value: Value = nuncio_protocol::json::decode(body)?;
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { path };
        A2aError::invalid_field(field, error.inner().to_string())
    })
}

fn time(text: &str) -> Result<Timestamp, A2aError> {
    Timestamp::parse(text)
        .map_err(|_| A2aError::invalid_field("since", "is a time such as 2026-01-31T12:00:00Z"))
}

fn named(task: &str, config: &str) -> WebhookId {
    WebhookId {
        task: task.into(),
        config: config.into(),
    }
}

fn decoded(segment: &str) -> Result<String, A2aError> {
    let text = percent_decode_str(segment).decode_utf8();
    let text = text.map_err(|_| A2aError::new(ErrorKind::MethodNotFound, "no such path"))?;
    Ok(text.into_owned())
}

fn good(body: Value) -> AdminReply {
    AdminReply {
        status: StatusCode::OK,
        body,
    }
}

fn unknown(id: &WebhookId) -> A2aError {
    let short = |text: &str| text.chars().take(128).collect::<String>();
    let (task, config) = (short(id.task.as_str()), short(id.config.as_str()));
    let message = format!("task {task} has no push notification config {config}");
    A2aError::new(ErrorKind::TaskNotFound, message)
}

fn not_allowed(methods: &str) -> A2aError {
    let message = format!("this address takes {methods}");
    A2aError::new(ErrorKind::MethodNotAllowed, message)
}

fn unreadable(error: StoreError) -> A2aError {
    tracing::error!(%error, "the store failed");
    match error {
        StoreError::Unavailable(_) | StoreError::Closed => A2aError::new(
            ErrorKind::Unavailable,
            "the store is unavailable, try again later",
        ),
        _ => A2aError::internal(),
    }
}
