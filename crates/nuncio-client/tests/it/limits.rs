//! Time and size limits that say which one was hit (BR-157).

use std::time::Duration;

use nuncio_client::{Cause, FollowPolicy, RetryPolicy, Timeouts, cause};
use nuncio_protocol::{A2aError, AgentService as _, Binding, ErrorKind};
use serde_json::json;

use crate::support::{Answer, BINDINGS, Fake, Request, builder, call, collect, hello, task_item};

fn limits(first_byte: u64, idle: u64) -> Timeouts {
    Timeouts {
        first_byte: Some(Duration::from_secs(first_byte)),
        idle: Some(Duration::from_secs(idle)),
        ..Timeouts::default()
    }
}

fn told(error: &A2aError, expected: Cause, words: &str) {
    assert_eq!(cause(error), Some(expected), "{}", error.message);
    assert_eq!(error.kind, ErrorKind::DeadlineExceeded);
    assert!(error.message.contains(words), "{}", error.message);
}

/// A blocking answer after two minutes is nothing special.
#[tokio::test]
async fn br_157_slow_120_works_by_default() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            Answer::after(
                Duration::from_secs(120),
                request.ok(&task_item("COMPLETED")),
            )
        })
        .await;
        let client = fake.client(binding, false);
        client.send_message(call(), hello()).await.unwrap();
    }
}

#[tokio::test]
async fn br_157_an_agent_that_says_nothing_hits_the_first_byte_limit() {
    let fake = Fake::start(|_: &Request| Answer::default().then_stop_clock().then_hang()).await;
    let client = builder()
        .timeouts(limits(30, 10))
        .build(fake.card(Binding::JsonRpc, false))
        .unwrap();
    let error = client.send_message(call(), hello()).await.unwrap_err();
    told(&error, Cause::FirstByteTimeout, "first-byte limit of 30s");
}

#[tokio::test]
async fn br_157_the_total_limit_is_per_client_or_per_call() {
    for per_call in [true, false] {
        let fake = Fake::start(|_: &Request| Answer::default().then_stop_clock().then_hang()).await;
        let mut client = fake.client(Binding::HttpJson, false);
        let mut call = call();
        if per_call {
            call.timeout = Some(Duration::from_secs(7));
        } else {
            client = client.with_timeouts(Timeouts {
                total: Some(Duration::from_secs(7)),
                ..Timeouts::default()
            });
        }
        let error = client.send_message(call, hello()).await.unwrap_err();
        told(&error, Cause::TotalTimeout, "total limit of 7s");
        tokio::time::resume();
    }
}

/// Silence in mid stream; comments would count, so there are some before it.
#[tokio::test]
async fn br_157_a_silent_stream_hits_the_idle_limit() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            let first = request.enveloped(&task_item("WORKING"));
            Answer::sse(&format!("data: {first}\n\n: ping\n\n")).then_hang()
        })
        .await;
        let client = builder()
            .timeouts(limits(60, 20))
            .build(fake.card(binding, true))
            .unwrap();
        let mut stream = client
            .send_streaming_message(call(), hello())
            .await
            .unwrap();
        let first = futures_util::StreamExt::next(&mut stream).await.unwrap();
        assert!(first.is_ok());
        tokio::time::pause();
        let (_, error) = collect(stream).await;
        told(&error.unwrap(), Cause::IdleTimeout, "idle limit of 20s");
        tokio::time::resume();
    }
}

/// Keep-alives hold a stream open for longer than the idle limit.
#[tokio::test]
async fn br_157_keep_alives_count_against_the_idle_limit() {
    let fake = Fake::start(|request: &Request| {
        let ping = Answer::raw(": ping\n\n");
        let end = Answer::raw(format!(
            "data: {}\n\n",
            request.enveloped(&crate::support::status("COMPLETED"))
        ));
        let mut answer = request.stream(&[(0, task_item("WORKING"))]);
        for next in [ping.clone(), ping.clone(), ping, end] {
            answer = answer.and_after(Duration::from_secs(15), next);
        }
        answer
    })
    .await;
    let client = builder()
        .timeouts(limits(60, 20))
        .build(fake.card(Binding::JsonRpc, true))
        .unwrap();
    let stream = client
        .send_streaming_message(call(), hello())
        .await
        .unwrap();
    let (events, error) = collect(stream).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!(events.len(), 2);
}

/// A listener whose queue is full never completes the handshake of TLS.
#[tokio::test]
async fn br_157_the_connect_limit_covers_tls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/a2a", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        tokio::time::pause();
        std::future::pending::<()>().await;
        drop(socket);
    });
    let fake = Fake::start(|_: &Request| Answer::hang()).await;
    let mut card = fake.card(Binding::JsonRpc, false);
    card.supported_interfaces[0].url = url;
    let limits = Timeouts {
        connect: Some(Duration::from_secs(3)),
        ..Timeouts::default()
    };
    let retry = RetryPolicy {
        retries: 0,
        ..RetryPolicy::default()
    };
    let client = builder().timeouts(limits).retry(retry).build(card).unwrap();
    let error = client.send_message(call(), hello()).await.unwrap_err();
    told(&error, Cause::ConnectTimeout, "connect limit of 3s");
}

#[tokio::test]
async fn answers_and_events_are_capped() {
    for binding in BINDINGS {
        let fake = Fake::start(|request: &Request| {
            let text = "x".repeat(5_000);
            let item = json!({"message": {"messageId": "x", "role": "ROLE_AGENT", "parts": [{"text": text}]}});
            match request.operation().as_str() {
                "SendMessage" => request.ok(&item),
                _ => request.stream(&[(0, item)]),
            }
        })
        .await;
        let client = builder()
            .max_response_bytes(1_000)
            .max_event_bytes(1_000)
            .build(fake.card(binding, true))
            .unwrap();
        let error = client.send_message(call(), hello()).await.unwrap_err();
        assert_eq!(cause(&error), Some(Cause::BadAnswer));
        assert!(error.message.contains("1000 bytes"), "{}", error.message);
        let error = client.stream(call(), hello()).await.err().unwrap();
        assert!(error.message.contains("1000 bytes"), "{}", error.message);
    }
}

/// A server that restarts is waited for, whichever way its task is looked for.
#[test]
fn a_restarting_agent_has_at_least_ten_seconds() {
    let policy = FollowPolicy::default();
    let asked_again = (0..policy.attempts).map(|n| policy.reconnect.delay(n));
    let polled = (0..policy.attempts - 2).map(|n| policy.reconnect.delay(n));
    for waited in [asked_again.sum(), polled.sum::<Duration>()] {
        assert!(waited >= Duration::from_secs(10), "{waited:?}");
    }
}
