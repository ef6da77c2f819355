//! A client with one task: sends, repeats, answers, cancels, follows.

use std::time::Duration;

use futures_util::StreamExt as _;
use nuncio_protocol::{
    A2aError, AgentService as _, Call, CancelTaskRequest, ErrorKind, Event, GetTaskRequest,
    Message, Part, SendMessageConfiguration, SendMessageRequest, SendMessageResponse,
    SubscribeToTaskRequest, Task, TaskId, TaskState,
};
use nuncio_testkit::call;
use tokio::time::{sleep, timeout};

use crate::world::World;

/// What a client has seen.
pub(crate) struct Told {
    pub(crate) which: usize,
    pub(crate) task: TaskId,
    /// The events of its subscription: those at the head of each connection, and the others.
    pub(crate) heads: Vec<u64>,
    pub(crate) events: Vec<Event>,
    /// The ids of its messages that were taken.
    pub(crate) taken: Vec<String>,
    /// Whether its cancel was answered with a canceled task.
    pub(crate) canceled: bool,
}

/// How long a client waits for an answer before it believes the connection dead.
const DEAD: Duration = Duration::from_secs(20);

pub(crate) async fn live(world: World, number: u64) -> Told {
    let chance = world.chance().clone();
    sleep(Duration::from_millis(chance.below(25_000))).await;
    let which = chance.below(2) as usize;
    let asks = chance.once_in(3);
    let what = if asks { "ask" } else { "work" };
    let text = format!("{what} {}", 1 + chance.below(12));
    let first = message(&format!("m{number}"), &text);
    let task = send(&world, which, first)
        .await
        .expect("a new task is taken");
    let mut told = Told {
        which,
        task: task.id.clone(),
        heads: Vec::new(),
        events: Vec::new(),
        taken: vec![format!("m{number}")],
        canceled: false,
    };
    let following = follow(&world, which, &task.id);
    let acting = async {
        if asks && answer(&world, which, &task, number).await {
            return (true, false);
        }
        sleep(Duration::from_millis(chance.below(3_000))).await;
        match chance.below(4) {
            0 => (false, cancel(&world, which, &task.id).await),
            1 => (add(&world, which, &task, number).await, false),
            _ => (false, false),
        }
    };
    let ((heads, events), (taken, canceled)) = tokio::join!(following, acting);
    (told.heads, told.events, told.canceled) = (heads, events, canceled);
    if taken {
        told.taken.push(format!("a{number}"));
    }
    told
}

fn message(id: &str, text: &str) -> Message {
    Message::user(id, vec![Part::text(text)])
}

/// Sends until it is answered, to one process after another, sometimes to two at once.
async fn send(world: &World, which: usize, message: Message) -> Result<Task, A2aError> {
    let chance = world.chance();
    loop {
        let mut request = SendMessageRequest::new(message.clone());
        let mut configuration = SendMessageConfiguration::default();
        configuration.return_immediately = !chance.once_in(3);
        request.configuration = Some(configuration);
        let agent = world.agent(which);
        if chance.once_in(3) {
            let (other, request) = (world.agent(which), request.clone());
            tokio::spawn(async move { other.send_message(caller(), request).await });
        }
        let sent = timeout(DEAD, agent.send_message(caller(), request)).await;
        match sent {
            Ok(Ok(SendMessageResponse::Task(task))) => return Ok(task),
            Ok(Ok(other)) => panic!("{other:?}"),
            Ok(Err(error)) if error.kind == ErrorKind::Unavailable => {}
            Ok(Err(error)) => return Err(error),
            Err(_elapsed) => {}
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// The caller with a limit to blocking.
fn caller() -> Call {
    let mut call = call("ada");
    call.timeout = Some(Duration::from_secs(5));
    call
}

/// Waits for the question and answers it; `false` if the task ended before.
async fn answer(world: &World, which: usize, task: &Task, number: u64) -> bool {
    loop {
        sleep(Duration::from_millis(500)).await;
        let request = GetTaskRequest::new(task.id.clone());
        let read = timeout(DEAD, world.agent(which).get_task(caller(), request)).await;
        match read {
            Ok(Ok(task)) if task.status.state.is_terminal() => return false,
            Ok(Ok(task)) if task.status.state == TaskState::InputRequired => break,
            Ok(Err(error)) if error.kind != ErrorKind::Unavailable => panic!("{error:?}"),
            _ => {}
        }
    }
    let mut answer = message(&format!("a{number}"), "work 3");
    answer.task_id = Some(task.id.clone());
    send(world, which, answer)
        .await
        .expect("a question is answered");
    true
}

/// Sends a further message, whatever the task is doing; `false` if it has ended.
async fn add(world: &World, which: usize, task: &Task, number: u64) -> bool {
    let mut further = message(&format!("a{number}"), "work 2");
    further.task_id = Some(task.id.clone());
    match send(world, which, further).await {
        Ok(_) => true,
        Err(error) if error.kind == ErrorKind::UnsupportedOperation => false,
        Err(error) => panic!("{error:?}"),
    }
}

/// Cancels until it is answered; whether the task is canceled then.
async fn cancel(world: &World, which: usize, task: &TaskId) -> bool {
    loop {
        let request = CancelTaskRequest::new(task.clone());
        let canceled = timeout(DEAD, world.agent(which).cancel_task(caller(), request)).await;
        match canceled {
            Ok(Ok(task)) if task.status.state == TaskState::Canceled => return true,
            Ok(Err(error)) if error.kind == ErrorKind::TaskNotCancelable => return false,
            Ok(Err(error)) if error.kind != ErrorKind::Unavailable => panic!("{error:?}"),
            _ => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Follows a task to its end, coming back with the last position when a stream breaks off.
async fn follow(world: &World, which: usize, task: &TaskId) -> (Vec<u64>, Vec<Event>) {
    let (mut heads, mut events): (Vec<u64>, Vec<Event>) = (Vec::new(), Vec::new());
    loop {
        let mut call = caller();
        call.last_event_id = heads.last().copied().max(position(events.last()));
        let request = SubscribeToTaskRequest::new(task.clone());
        let agent = world.agent(which);
        let stream = timeout(DEAD, agent.subscribe_to_task(call, request)).await;
        let mut stream = match stream {
            Ok(Ok(stream)) => stream,
            // It has ended, and the caller had seen nothing of it yet or all.
            Ok(Err(error)) if error.kind == ErrorKind::UnsupportedOperation => {
                return (heads, events);
            }
            Ok(Err(error)) if error.kind != ErrorKind::Unavailable => panic!("{error:?}"),
            _ => {
                sleep(Duration::from_millis(200)).await;
                continue;
            }
        };
        let mut is_first = true;
        while let Ok(Some(Ok(event))) = timeout(DEAD, stream.next()).await {
            if std::mem::take(&mut is_first) {
                heads.extend(event.position);
            } else {
                events.push(event.clone());
            }
            if event.state().is_some_and(TaskState::is_terminal) {
                return (heads, events);
            }
        }
    }
}

fn position(event: Option<&Event>) -> Option<u64> {
    event.and_then(|event| event.position)
}
