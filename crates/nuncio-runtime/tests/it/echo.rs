//! The echo agent.

use std::sync::Arc;

use nuncio_protocol::TaskState;
use nuncio_runtime::EchoAgent;
use tokio::time::{Duration, Instant};

use crate::support::{Hosted, texts};

fn echo() -> Hosted {
    Hosted::new(Arc::new(EchoAgent::new("echo")))
}

#[tokio::test]
async fn text_comes_back_as_one_artifact() {
    let task = echo().task("hello").await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(texts(&task), ["hello"]);
}

#[tokio::test(start_paused = true)]
async fn hold_takes_half_a_minute() {
    let began = Instant::now();
    let task = echo().task("hold the line").await;
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(texts(&task), ["hold the line"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_hold_at_once() {
    let hosted = echo();
    let task = hosted.begin("hold").await;
    let began = Instant::now();
    let canceled = hosted.cancel(&task.id).await;
    assert_eq!(canceled.status.state, TaskState::Canceled);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(texts(&canceled), [""; 0]);
}
