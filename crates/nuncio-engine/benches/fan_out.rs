//! What does it cost to tell a thousand subscribers of one task its events?

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::StreamExt as _;
use nuncio_protocol::{AgentService as _, SubscribeToTaskRequest};
use nuncio_testkit::{Bed, Behaviour, call};

const READERS: u64 = 1_000;
const EVENTS: u64 = 100;

fn fan_out(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut group = criterion.benchmark_group("fan out");
    group
        .sample_size(10)
        .throughput(Throughput::Elements(READERS * EVENTS));
    group.bench_function("100 events to 1,000 subscribers, as JSON", |bench| {
        bench.to_async(&runtime).iter(|| async {
            let bed = Bed::new(Behaviour::Flood(EVENTS));
            let task = bed.start("m1", "go").await;
            let readers = (0..READERS).map(|_| async {
                let request = SubscribeToTaskRequest::new(task.id.clone());
                let mut events = bed
                    .agent
                    .subscribe_to_task(call("alice"), request)
                    .await
                    .expect("live");
                let mut bytes = 0;
                while let Some(event) = events.next().await {
                    bytes += event.expect("an event").json().len();
                }
                bytes
            });
            futures_util::future::join_all(readers).await
        });
    });
    group.finish();
}

criterion_group!(benches, fan_out);
criterion_main!(benches);
