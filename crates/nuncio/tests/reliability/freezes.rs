//! A replica that does nothing for longer than its leases hold, and then goes on.

use std::time::Duration;

use crate::database::Database;
use crate::replicas::Fleet;
use crate::report::{Report, count};
use crate::servers::send;
use crate::sound::is_sound;

/// An agent that may run again, and tells whose process it is in.
fn config(name: &str) -> String {
    format!(
        r#"
[engine]
lease_seconds = 2

[[agents]]
id = "slow"
kind = "script"
resumable = true
rules = [{{ otherwise = true, steps = [
    {{ repeat = {{ times = 200, steps = [{{ status = "by {name}" }}, {{ wait_ms = 50 }}] }} }},
    {{ artifact = {{ text = "done by {name}" }} }},
] }}]
"#
    )
}

/// R10: whoever was frozen has lost its runs, and writes no row of them when it goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r10_a_frozen_replica_writes_nothing_once_another_has_taken_over() {
    let Some(database) = Database::new().await else {
        return;
    };
    let mut report = Report::new("freezes", "R10");
    let (rounds, tasks) = (count(1, 5), count(5, 20));
    let mut rows_of_the_frozen = 0;
    for round in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let configs = [config("first"), config("second")];
        let fleet = Fleet::start(folder.path(), &database.url(), &configs, None).await;
        let [first, second] = &fleet.servers[..] else {
            panic!("two servers");
        };
        let mut ids = Vec::new();
        for n in 0..tasks {
            let (status, reply) = send(first.address(), &format!("{round} {n}"), "go").unwrap();
            assert_eq!(status, 200, "{reply}");
            ids.push(reply["task"]["id"].as_str().unwrap().to_owned());
        }
        for id in &ids {
            until(&database, id, "by first").await;
        }
        first.freeze();
        for id in &ids {
            until(&database, id, "by second").await;
        }
        first.thaw();
        for id in &ids {
            until(&database, id, "done by second").await;
            rows_of_the_frozen += late_rows(&database, id).await;
        }
        let fenced = first
            .log()
            .matches("another process has taken over")
            .count();
        assert_eq!(fenced, tasks, "each loss is noticed: {}", first.log());
        assert!(!second.log().contains("another process has taken over"));
    }
    report.set("freezes", rounds);
    report.set("runs_taken_over", rounds * tasks);
    report.set("rows_of_the_frozen_replica", rows_of_the_frozen);
    assert_eq!(rows_of_the_frozen, 0);
    assert_eq!(is_sound(&database).await, 2, "attempts");
    report.passed();
}

/// Waits until the newest event of a task says this.
async fn until(database: &Database, task: &str, says: &str) {
    let client = database.client().await;
    let newest = "SELECT l.payload FROM nuncio.log l JOIN nuncio.tasks t ON t.number = l.task
        WHERE t.id = $1 ORDER BY l.first DESC LIMIT 3";
    for _ in 0..1_200 {
        let rows = client.query(newest, &[&task]).await.unwrap();
        let mut payloads = rows.iter().map(|row| row.get::<_, &str>(0));
        if payloads.any(|payload| payload.contains(says)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{task} does not come to be {says}");
}

/// How many rows the first server has written after the first row of the second.
async fn late_rows(database: &Database, task: &str) -> i64 {
    let late = "SELECT count(*) FROM nuncio.log l JOIN nuncio.tasks t ON t.number = l.task
        WHERE t.id = $1 AND l.payload LIKE '%by first%' AND l.first > (
            SELECT min(s.first) FROM nuncio.log s
            WHERE s.task = t.number AND s.payload LIKE '%by second%')";
    let client = database.client().await;
    client.query_one(late, &[&task]).await.unwrap().get(0)
}
