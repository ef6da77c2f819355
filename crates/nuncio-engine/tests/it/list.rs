//! Listing: filters, pages, totals.

use std::time::Duration;

use nuncio_protocol::{AgentService as _, ErrorKind, ListTasksRequest, TaskState};
use nuncio_testkit::{Bed, Behaviour, call, send, sent_task, text_message};

/// OP-LIST-02..06: newest first, in pages, each task once.
#[tokio::test]
async fn pages_hold_every_task_once_newest_first() {
    let bed = Bed::new(Behaviour::Echo);
    for n in 0..7 {
        bed.ask(&format!("m{n}"), &format!("text {n}")).await;
        bed.clock.advance(if n % 2 == 0 { 1_000 } else { 0 });
    }
    let mut request = ListTasksRequest::default();
    request.page_size = Some(3);
    let mut seen = Vec::new();
    loop {
        let page = bed
            .agent
            .list_tasks(call("alice"), request.clone())
            .await
            .unwrap();
        assert_eq!((page.page_size, page.total_size), (3, 7), "OP-LIST-06");
        seen.extend(page.tasks);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = Some(page.next_page_token);
    }
    let times: Vec<_> = seen
        .iter()
        .map(|task| (task.status.timestamp, task.id.clone()))
        .collect();
    assert!(times.windows(2).all(|pair| pair[0] > pair[1]), "{times:?}");
    assert_eq!(seen.len(), 7);
}

/// BR-086: filters combine; artifacts only when asked for.
#[tokio::test]
async fn br_086_filters_combine_and_artifacts_are_left_out() {
    let bed = Bed::new(Behaviour::Ask(1));
    let parked = bed.ask("m1", "one").await;
    let mut message = text_message("m2", "two");
    message.context_id = Some("other".into());
    let other = sent_task(
        bed.agent
            .send_message(call("alice"), send(message))
            .await
            .unwrap(),
    );
    let done = bed.answer("m3", &parked, "blue").await;
    let list = async |request: ListTasksRequest| {
        bed.agent
            .list_tasks(call("alice"), request)
            .await
            .unwrap()
            .tasks
    };
    let mut by_context = ListTasksRequest::default();
    by_context.context_id = Some("other".into());
    assert_eq!(list(by_context.clone()).await[0].id, other.id);
    by_context.status = Some(TaskState::Completed);
    assert!(list(by_context).await.is_empty());
    let mut completed = ListTasksRequest::default();
    completed.status = Some(TaskState::Completed);
    let found = list(completed.clone()).await;
    assert_eq!((found.len(), &found[0].id), (1, &done.id));
    assert!(found[0].artifacts.is_empty(), "OP-LIST-07");
    completed.include_artifacts = Some(true);
    assert_eq!(list(completed).await[0].artifacts, done.artifacts);
    let mut unknown = ListTasksRequest::default();
    unknown.context_id = Some("nobody's".into());
    assert!(list(unknown).await.is_empty(), "OP-LIST-10");
}

/// BR-087, OP-LIST-09: the time filter is inclusive.
#[tokio::test]
async fn br_087_the_time_filter_is_inclusive() {
    let bed = Bed::new(Behaviour::Echo);
    bed.ask("m1", "old").await;
    bed.clock.advance(1_000);
    let newer = bed.ask("m2", "new").await;
    let mut request = ListTasksRequest::default();
    request.status_timestamp_after = newer.status.timestamp;
    let page = bed
        .agent
        .list_tasks(call("alice"), request.clone())
        .await
        .unwrap();
    assert_eq!(
        page.tasks.iter().map(|t| &t.id).collect::<Vec<_>>(),
        [&newer.id]
    );
    assert_eq!(page.total_size, 1);
}

/// BR-083, OP-LIST-13.
#[tokio::test]
async fn broken_tokens_are_refused_and_an_empty_list_is_whole() {
    let bed = Bed::new(Behaviour::Echo);
    let page = bed
        .agent
        .list_tasks(call("alice"), ListTasksRequest::default())
        .await
        .unwrap();
    let json = nuncio_protocol::json::encode(&page);
    assert_eq!(
        json,
        r#"{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}"#
    );
    for token in ["x", "AAAA", "!!!"] {
        let mut request = ListTasksRequest::default();
        request.page_token = Some(token.to_owned());
        let error = bed
            .agent
            .list_tasks(call("alice"), request)
            .await
            .unwrap_err();
        assert_eq!(
            (error.kind, error.violations()[0].field.as_str()),
            (ErrorKind::InvalidParams, "pageToken")
        );
    }
}

/// ST-03: a clock that steps back does not take a status back in time.
#[tokio::test(start_paused = true)]
async fn times_of_a_task_never_go_back() {
    let bed = Bed::new(Behaviour::Slow(3));
    let task = bed.start("m1", "go").await;
    bed.clock.advance(-3_600_000);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(bed.task(&task.id).await.status.timestamp >= task.status.timestamp);
}
