//! `nuncio task get|list|cancel|subscribe`; `trace` and `rerun` have files of their own.

use nuncio_protocol::{
    A2aError, AgentService as _, Call, CancelTaskRequest, ErrorKind, GetTaskRequest,
    ListTasksRequest, Task, Timestamp,
};

use super::follow::{Ending, Wait};
use super::options::said;
use super::send::metadata;
use super::session::{Prepared, Session};
use crate::arguments::{
    TaskCancelArguments, TaskCommand, TaskGetArguments, TaskListArguments, TaskSubscribeArguments,
};
use crate::outcome::{Code, Failure, Outcome};
use crate::surroundings::Surroundings;

/// Runs a command about tasks.
pub(crate) fn task(command: TaskCommand, around: &Surroundings) -> Outcome {
    match command {
        TaskCommand::Get(arguments) => get(arguments, around),
        TaskCommand::List(arguments) => list(arguments, around),
        TaskCommand::Cancel(arguments) => cancel(arguments, around),
        TaskCommand::Subscribe(arguments) => subscribe(arguments, around),
        TaskCommand::Trace(arguments) => super::trace::trace(&arguments, around),
        TaskCommand::Rerun(arguments) => super::rerun::rerun(&arguments, around),
        // These work on a store, without an agent.
        TaskCommand::Export(arguments) => crate::portable::export(&arguments),
        TaskCommand::Import(arguments) => crate::portable::import(&arguments),
    }
}

fn get(arguments: TaskGetArguments, around: &Surroundings) -> Outcome {
    let prepared = Prepared::new(&arguments.client, arguments.follow.layer(), around)?;
    super::block_on(async {
        let session = prepared.connect().await?;
        if arguments.wait {
            return follow(&session, &arguments.task, false).await;
        }
        let mut request = GetTaskRequest::new(arguments.task.as_str());
        request.history_length = arguments.history;
        let task = session.client.get_task(Call::client(), request).await;
        show(&session, "get the task", task)
    })
}

fn cancel(arguments: TaskCancelArguments, around: &Surroundings) -> Outcome {
    let layer = said([("metadata", arguments.metadata.clone())]);
    let prepared = Prepared::new(&arguments.client, layer, around)?;
    let metadata = metadata(&prepared.settings)?;
    super::block_on(async {
        let session = prepared.connect().await?;
        let mut request = CancelTaskRequest::new(arguments.task.as_str());
        request.metadata = metadata;
        let task = session.client.cancel_task(Call::client(), request).await;
        let task = task.map_err(|error| failed(&session, "cancel the task", &error))?;
        session.printer.task(&task, &session.hints)
    })
}

fn subscribe(arguments: TaskSubscribeArguments, around: &Surroundings) -> Outcome {
    let prepared = Prepared::new(&arguments.client, arguments.follow.layer(), around)?;
    super::block_on(async {
        let session = prepared.connect().await?;
        follow(&session, &arguments.task, session.printer.stream).await
    })
}

/// Waits for a task and prints it, or its events as they come.
async fn follow(session: &Session, task: &str, events: bool) -> Outcome {
    let wait = Wait::new(session, events, None)?;
    let stream = session.client.follow(Call::client(), task);
    match wait
        .through("follow the task", stream)
        .await
        .map_err(with_list(session))?
    {
        Ending::Task(task) => {
            if !events {
                session.printer.task(&task, &session.hints)?;
            }
            session.printer.warn_about(&task, &session.hints)
        }
        Ending::Message(message) if !events => session.printer.json(&*message),
        Ending::Message(_) => Ok(()),
    }
}

fn list(arguments: TaskListArguments, around: &Surroundings) -> Outcome {
    let layer = said([("context-id", arguments.context_id.clone())]);
    let prepared = Prepared::new(&arguments.client, layer, around)?;
    let mut request = ListTasksRequest::default();
    request.context_id = prepared.settings.text("context-id").map(Into::into);
    request.status = arguments.status.map(|status| status.0);
    request.page_size = arguments.page_size;
    request.page_token.clone_from(&arguments.page_token);
    request.history_length = Some(arguments.history.unwrap_or(0));
    request.status_timestamp_after = arguments.since.as_deref().map(since).transpose()?;
    request.include_artifacts = arguments.include_artifacts.then_some(true);
    super::block_on(async {
        let session = prepared.connect().await?;
        let page = session.client.list_tasks(Call::client(), request).await;
        let page = page.map_err(|error| session.failed("list the tasks", &error))?;
        session.printer.page(&page)
    })
}

fn since(text: &str) -> Outcome<Timestamp> {
    Timestamp::parse(text)
        .map_err(|error| Failure::usage(format!("failed to read --since: {error}")))
}

fn show(session: &Session, doing: &str, task: Result<Task, A2aError>) -> Outcome {
    let task = task.map_err(|error| failed(session, doing, &error))?;
    session.printer.task(&task, &session.hints)?;
    session.printer.warn_about(&task, &session.hints)
}

pub(super) fn failed(session: &Session, doing: &str, error: &A2aError) -> Failure {
    let failure = session.failed(doing, error);
    if error.kind == ErrorKind::TaskNotFound {
        with_list(session)(failure)
    } else {
        failure
    }
}

/// Points at the list of tasks where a task was not found.
fn with_list(session: &Session) -> impl Fn(Failure) -> Failure {
    move |failure| match &failure {
        Failure::Told(told) if told.code == Code::Protocol("TaskNotFoundError") => {
            failure.hint(format!("{} shows your tasks", session.hints.list()))
        }
        _ => failure,
    }
}
