//! What happens, as the customer sees it.

use std::time::Duration;

use nuncio_client::{Client, ClientBuilder, Conversation, Reply};
use nuncio_protocol::{
    AgentService as _, Call, CancelTaskRequest, ListTasksRequest, Part, StreamResponse, Task,
    TaskState,
};

use super::cast::{Cast, egress};
use super::{Service, ids, tree, trouble};
use crate::outcome::{Failure, Outcome, print};

/// The smallest picture there is.
const PHOTO: &[u8] = include_bytes!("photo.png");

/// How long the other service has to hear of a cancel.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn tell(support: &Service, fulfilment: &Service, cast: &Cast) -> Outcome {
    let model = match cast.is_scripted() {
        true => "a scripted model; --provider and --model name a real one",
        false => "the model you named",
    };
    print(&format!(
        "support     is at {}\nfulfilment  is at {}\nboth speak with {model}\n\n",
        support.url, fulfilment.url
    ))?;
    let client = ClientBuilder::new(egress()?).connect(&support.url).await;
    let client = client
        .map_err(|error| Failure::internal(format!("failed to find the agent support: {error}")))?;
    let done = replace(&client).await?;
    let trees = [tree::of(support, &done).await?];
    print("\nwho called whom:\n")?;
    print(&tree::drawn(&trees[0], fulfilment).await?)?;
    call_off(&client, fulfilment).await
}

/// The order arrives damaged, and is replaced.
async fn replace(client: &Client) -> Outcome<Task> {
    let mut talk = Conversation::new(client.clone(), ids());
    say("customer", "Order ORD-1042 arrived damaged.")?;
    let asked = talk.ask("Order ORD-1042 arrived damaged.").await;
    let asked = asked.map_err(trouble("ask support"))?;
    let Some(question) = asked.question() else {
        show(&asked)?;
        let why = "the model did not ask for a photo, as its instructions say";
        return Err(Failure::internal(why));
    };
    say("support", &format!("asks: {}", question.text()))?;
    say("customer", "Here it is. [photo.png]")?;
    let photo = Part::raw(PHOTO.to_vec())
        .with_media_type("image/png")
        .with_filename("photo.png");
    let parts = vec![Part::text("Here it is."), photo];
    let answered = talk.ask_parts(parts, |_| {}).await;
    let answered = answered.map_err(trouble("send the photo"))?;
    show(&answered)?;
    let task = answered.task().cloned();
    task.ok_or_else(|| Failure::internal("support answered without a task"))
}

/// Something takes too long, and is called off in both services.
async fn call_off(client: &Client, fulfilment: &Service) -> Outcome {
    print("\n")?;
    say("customer", "Something is missing in order ORD-1042.")?;
    let mut talk = Conversation::new(client.clone(), ids());
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let asking = talk.ask_parts(
        vec![Part::text("Something is missing in order ORD-1042.")],
        move |event| {
            let _ = told.send(event.response().clone());
        },
    );
    let canceling = async {
        let mut task = None;
        while let Some(response) = heard.recv().await {
            match response {
                StreamResponse::Task(first) => task = Some(first.id),
                StreamResponse::StatusUpdate(update) => {
                    let said = update.status.message.map(|message| message.text());
                    if let Some(said) = said {
                        say("support", &format!("({said})"))?;
                        break;
                    }
                }
                _ => {}
            }
        }
        let task = task.ok_or_else(|| Failure::internal("support began no task"))?;
        say("customer", "Never mind, I have found it. [cancels]")?;
        let canceled = client.cancel_task(Call::client(), CancelTaskRequest::new(task));
        canceled.await.map_err(trouble("cancel"))
    };
    let (asked, canceled) = tokio::join!(asking, canceling);
    asked.map_err(trouble("ask support"))?;
    say("support", &state(canceled?.status.state))?;
    say("fulfilment", &state(rests(fulfilment).await?))
}

/// The state of the newest task of a service, once it has ended.
async fn rests(service: &Service) -> Outcome<TaskState> {
    let hosted = tree::hosted(service)?;
    let asked = tokio::time::timeout(PATIENCE, async {
        loop {
            let tasks = hosted.list_tasks(tree::caller(), ListTasksRequest::default());
            let tasks = tasks.await.map_err(trouble("list the tasks"))?.tasks;
            match tasks.first().map(|task| task.status.state) {
                Some(state) if state.is_terminal() => return Ok(state),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });
    asked
        .await
        .unwrap_or_else(|_| Err(Failure::internal("the cancel did not reach fulfilment")))
}

fn show(reply: &Reply) -> Outcome {
    say("support", &reply.text())
}

fn state(state: TaskState) -> String {
    let name = state.as_str().trim_start_matches("TASK_STATE_");
    format!("the task is {}", name.to_lowercase())
}

fn say(who: &str, what: &str) -> Outcome {
    Ok(print(&format!("{who:<11} {what}\n"))?)
}
