//! How long does it take to read and write a message of 1 KiB and of 1 MiB, and an event?
//!
//! A send request over JSON-RPC is read as a server does (check, envelope, params) and written as a
//! client does; the check for repeated keys and depth is timed alone too. Text is one long part,
//! raw is one part of bytes, data is many small values. Run with `cargo bench -p nuncio-protocol`.

#![expect(clippy::unwrap_used, reason = "a bench that fails may panic")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nuncio_protocol::v1::json_rpc;
use nuncio_protocol::{
    Artifact, Message, Operation, Part, SendMessageRequest, StreamResponse,
    TaskArtifactUpdateEvent, TaskState, TaskStatus, TaskStatusUpdateEvent, Timestamp, json,
};

const SIZES: [(&str, usize); 2] = [("1KiB", 1 << 10), ("1MiB", 1 << 20)];

fn parts(bytes: usize) -> [(&'static str, Part); 3] {
    let text: String = "Translate the invoice, please: 5 €.\n"
        .chars()
        .cycle()
        .take(bytes * 36 / 38)
        .collect();
    let raw: Vec<u8> = (0..bytes * 3 / 4).map(|n| (n * 31 % 251) as u8).collect();
    let rows: Vec<serde_json::Value> = (0..bytes / 40)
        .map(|n| serde_json::json!({"id": n, "name": "row", "on": true}))
        .collect();
    [
        ("text", Part::text(text)),
        ("raw", Part::raw(raw)),
        ("data", Part::data(rows)),
    ]
}

fn request(part: &Part) -> Operation {
    let message = Message::user("0191e2c4-8c1e-7c51-a1b2-3f4a5b6c7d8e", vec![part.clone()]);
    Operation::SendMessage(SendMessageRequest::new(message))
}

fn messages(c: &mut Criterion) {
    let id = json_rpc::RequestId::text("1");
    for (size, bytes) in SIZES {
        for (kind, part) in parts(bytes) {
            let operation = request(&part);
            let text = json_rpc::encode_request(&id, &operation);
            let name = format!("{kind}/{size}");
            let mut group = c.benchmark_group("message");
            group.throughput(Throughput::Bytes(text.len() as u64));
            group.bench_function(BenchmarkId::new("check", &name), |b| {
                b.iter(|| json::check(black_box(text.as_bytes())).unwrap().len());
            });
            group.bench_function(BenchmarkId::new("decode", &name), |b| {
                b.iter(|| {
                    let request = json_rpc::Request::decode(black_box(text.as_bytes())).unwrap();
                    request.operation().unwrap()
                });
            });
            group.bench_function(BenchmarkId::new("encode", &name), |b| {
                b.iter(|| json_rpc::encode_request(&id, black_box(&operation)));
            });
            group.finish();
        }
    }
}

fn events(c: &mut Criterion) {
    let at = Timestamp::parse("2025-10-28T10:30:00.123Z").unwrap();
    let (task, context) = ("0191e2c4-8c1e-7c51-a1b2-3f4a5b6c7d8e", "ctx-1");
    let status = TaskStatus::new(TaskState::Working, at);
    let status = TaskStatusUpdateEvent::new(task.into(), context.into(), status);
    let piece = Artifact::new("answer", vec![Part::text("a few words of it ")]);
    let piece = TaskArtifactUpdateEvent::new(task.into(), context.into(), piece);
    let mut group = c.benchmark_group("event");
    for (name, event) in [
        ("status", StreamResponse::StatusUpdate(status)),
        ("artifact", StreamResponse::ArtifactUpdate(piece)),
    ] {
        let text = json::encode(&event);
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(BenchmarkId::new("encode", name), |b| {
            b.iter(|| json::encode(black_box(&event)));
        });
        group.bench_function(BenchmarkId::new("decode", name), |b| {
            b.iter(|| json::decode::<StreamResponse>(black_box(text.as_bytes())).unwrap());
        });
    }
    group.finish();
}

criterion_group!(benches, messages, events);
criterion_main!(benches);
