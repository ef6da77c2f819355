//! What is tried again, and what is not.

use nuncio_protocol::{AgentService as _, ErrorKind, GetTaskRequest};
use serde_json::json;

use crate::support::{Answer, BINDINGS, Fake, Request, call, hello, task, task_item};

#[tokio::test]
async fn an_agent_that_declines_for_now_is_asked_again() {
    for binding in BINDINGS {
        for status in [503, 429] {
            let mut first = true;
            let fake = Fake::start(move |request: &Request| {
                if std::mem::replace(&mut first, false) {
                    return Answer::with_headers(status, "retry-after: 0\r\n", "");
                }
                request.ok(&task_item("COMPLETED"))
            })
            .await;
            let client = fake.client(binding, false);
            client.send_message(call(), hello()).await.unwrap();
            let ids: Vec<_> = fake
                .requests()
                .iter()
                .map(|r| r.params()["message"]["messageId"].clone())
                .collect();
            assert_eq!(
                ids,
                ["m1", "m1"],
                "the same message, so that it happens once"
            );
        }
    }
}

#[tokio::test]
async fn a_send_that_may_have_arrived_is_not_repeated() {
    for binding in BINDINGS {
        for answer in [
            Answer::default(),
            Answer::with_type(503, "text/plain", ""),
            Answer::with_type(500, "text/plain", ""),
            Answer::with_headers(503, "retry-after: 31\r\n", ""),
        ] {
            let fake = Fake::start(move |_: &Request| answer.clone()).await;
            let client = fake.client(binding, false);
            client.send_message(call(), hello()).await.unwrap_err();
            assert_eq!(fake.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_read_whose_answer_was_lost_is_repeated() {
    for binding in BINDINGS {
        for lost in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"] {
            let mut first = true;
            let fake = Fake::start(move |request: &Request| {
                if std::mem::replace(&mut first, false) {
                    return Answer::raw(lost);
                }
                request.ok(&task("WORKING", &json!([])))
            })
            .await;
            let client = fake.client(binding, false);
            client
                .get_task(call(), GetTaskRequest::new("t1"))
                .await
                .unwrap();
            assert_eq!(fake.requests().len(), 2);
        }
    }
}

#[tokio::test]
async fn retries_come_to_an_end() {
    for binding in BINDINGS {
        let fake =
            Fake::start(|_: &Request| Answer::with_headers(503, "retry-after: 0\r\n", "")).await;
        let client = fake.client(binding, false);
        let error = client.send_message(call(), hello()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert_eq!(fake.requests().len(), 3);
    }
}
