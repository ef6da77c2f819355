//! `nuncio send`.

use nuncio_engine::RandomIds;
use nuncio_protocol::{
    AgentService as _, Call, Ids as _, Message, Metadata, SendMessageConfiguration,
    SendMessageRequest, SendMessageResponse,
};

use super::follow::{Ending, Wait};
use super::options::{Layer, flag, said};
use super::session::{Prepared, Session};
use super::settings::Settings;
use crate::arguments::SendArguments;
use crate::outcome::{Failure, Outcome};
use crate::surroundings::Surroundings;

/// Sends a message and prints what comes of it.
pub(crate) fn send(arguments: SendArguments, around: &Surroundings) -> Outcome {
    let prepared = Prepared::new(&arguments.client, layer(&arguments), around)?;
    let message = message(&arguments, &prepared.settings)?;
    let metadata = metadata(&prepared.settings)?;
    super::block_on(async {
        let session = prepared.connect().await?;
        let mut request = SendMessageRequest::new(message);
        request.metadata = metadata;
        // A live stream and a return at once exclude each other; the flag here wins.
        let at_once = session.settings.returns_at_once()? && !session.printer.stream;
        if at_once {
            send_only(&session, request).await
        } else {
            wait(&session, request).await
        }
    })
}

fn layer(arguments: &SendArguments) -> Layer {
    let mut layer = arguments.follow.layer();
    layer.extend(said([
        ("context-id", arguments.context_id.clone()),
        ("task-id", arguments.task_id.clone()),
        ("metadata", arguments.metadata.clone()),
        ("async", flag(arguments.asynchronous)),
        ("wait", flag(arguments.wait)),
    ]));
    layer
}

fn message(arguments: &SendArguments, settings: &Settings) -> Outcome<Message> {
    let id = arguments
        .message_id
        .clone()
        .unwrap_or_else(|| RandomIds.next());
    let mut message = Message::user(id, arguments.parts.parts()?);
    message.context_id = settings.text("context-id").map(Into::into);
    message.task_id = settings.text("task-id").map(Into::into);
    Ok(message)
}

/// The `--metadata` of a request.
pub(crate) fn metadata(settings: &Settings) -> Outcome<Option<Metadata>> {
    let Some(text) = settings.text("metadata") else {
        return Ok(None);
    };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        Failure::usage(format!(
            "failed to read --metadata as a JSON object: {error}"
        ))
        .hint("for example --metadata '{\"tier\":\"gold\"}'")
    })
}

async fn send_only(session: &Session, mut request: SendMessageRequest) -> Outcome {
    let mut configuration = SendMessageConfiguration::default();
    configuration.return_immediately = true;
    request.configuration = Some(configuration);
    let named = names_task(&request);
    let sent = session.client.send_message(Call::client(), request).await;
    let sent = sent.map_err(|error| session.failed("send the message", &error));
    let sent = sent.map_err(|failure| point_at_debug(failure, named))?;
    session.printer.sent(&sent, &session.hints)?;
    warn_about(session, &sent)
}

pub(super) async fn wait(session: &Session, request: SendMessageRequest) -> Outcome {
    let named = names_task(&request);
    let message = request.message.as_ref();
    let message_id = message.map(|message| message.message_id.to_string());
    let wait = Wait::new(session, session.printer.stream, message_id)?;
    let stream = session.client.stream(Call::client(), request);
    let ending = wait.through("send the message", stream).await;
    let sent = match ending.map_err(|failure| point_at_debug(failure, named))? {
        Ending::Task(task) => SendMessageResponse::Task(*task),
        Ending::Message(message) => SendMessageResponse::Message(*message),
    };
    if !session.printer.stream {
        session.printer.sent(&sent, &session.hints)?;
    }
    warn_about(session, &sent)
}

fn warn_about(session: &Session, sent: &SendMessageResponse) -> Outcome {
    match sent {
        SendMessageResponse::Task(task) => session.printer.warn_about(task, &session.hints),
        _ => Ok(()),
    }
}

fn names_task(request: &SendMessageRequest) -> bool {
    let message = request.message.as_ref();
    message.is_some_and(|message| message.task_id.is_some())
}

/// A refused task id never becomes a new task; the exchange shows why it was refused.
fn point_at_debug(failure: Failure, named: bool) -> Failure {
    if named {
        failure.hint("nothing was started; --debug shows the agent's own error")
    } else {
        failure
    }
}
