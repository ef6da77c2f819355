//! What the contract does not see: how statements are carried out.

use nuncio_protocol::{TaskState, Timestamp};

use super::connection::Connector;
use super::list::Query;
use super::options::PostgresOptions;
use super::push::BACKLOG;
use super::sessions::entries_query;
use super::webhooks::page_query;
use crate::{DeliveryFilter, ListFilter, PageKey, PostgresStore, Scope, Store as _};

#[allow(
    clippy::allow_attributes,
    dead_code,
    reason = "shared with the integration tests, which use all of it"
)]
#[path = "../../tests/it/database.rs"]
mod database;

use database::Database;

fn scope() -> Scope {
    Scope {
        workspace: "w".into(),
        agent: "a".into(),
        caller: "ada".into(),
    }
}

/// Whatever the filter, an index leads to the page; only a conversation's tasks are sorted.
#[tokio::test]
async fn every_page_comes_from_an_index_in_order() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = PostgresStore::open(&database.url(), PostgresOptions::default()).await;
    let client = database.client().await;
    // Statistics of an empty table first, then of a full one.
    explain_all(&database).await;
    let fill = "INSERT INTO nuncio.scopes (workspace, agent, caller) VALUES ('w', 'a', 'ada');
        INSERT INTO nuncio.tasks (number, id, scope, context, state, status_ms, last, epoch, turn,
            attempt, created_ms)
        SELECT n, 't' || n, 1, 'c' || n % 700, CASE WHEN n % 50 = 0 THEN 2 ELSE 3 END, n, 1, 1, 1,
            1, n FROM generate_series(1, 20000) n;
        ANALYZE";
    client.batch_execute(fill).await.unwrap();
    explain_all(&database).await;
    store.unwrap().close().await.unwrap();
}

/// However many webhooks there are, a page of them is read and no more, and those that have had all
/// are in nobody's way.
#[tokio::test]
async fn pages_of_webhooks_come_from_an_index() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = PostgresStore::open(&database.url(), PostgresOptions::default()).await;
    let client = database.client().await;
    let fill = "INSERT INTO nuncio.scopes (workspace, agent, caller) VALUES ('w', 'a', 'ada');
        INSERT INTO nuncio.tasks (number, id, scope, context, state, status_ms, last, epoch, turn,
            attempt, created_ms)
        SELECT n, 't' || n, 1, 'c', 3, n, 1, 1, 1, 1, n FROM generate_series(1, 20000) n;
        INSERT INTO nuncio.push_configs (task, id, cursor, format, body, version, done)
        SELECT n, 'a', 1, 1, '{}', '1.0', n % 400 <> 0 FROM generate_series(1, 20000) n;
        INSERT INTO nuncio.push_letters
        SELECT n, 'a', 1, 1, 1, '500', false FROM generate_series(1, 20000, 500) n;
        ANALYZE";
    client.batch_execute(fill).await.unwrap();
    let connector = Connector::new(&database.url(), &PostgresOptions::default()).unwrap();
    let connection = connector.open().await.unwrap();
    for bits in 0..4_u8 {
        let filter = DeliveryFilter {
            task: (bits & 1 != 0).then(|| "t9000".into()),
            in_trouble: bits & 2 != 0,
        };
        let explain = format!("EXPLAIN {}", page_query(&filter));
        let task = filter.task.as_ref().map(|_| "t9000");
        let rows = connection
            .query(&explain, &[&"t10000", &"a", &task, &50_i64])
            .await
            .unwrap();
        let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = lines.join("\n");
        assert!(plan.contains("using push_configs_pkey"), "{plan}");
        assert!(!plan.contains("Seq Scan on push_configs"), "{plan}");
        assert!(!plan.contains("Seq Scan on tasks"), "{plan}");
    }
    let explain = format!("EXPLAIN {BACKLOG}");
    let rows = connection
        .query(&explain, &[&200_i64, &"t10000"])
        .await
        .unwrap();
    let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = lines.join("\n");
    assert!(plan.contains("push_configs_open"), "{plan}");
    assert!(plan.contains("push_letters_requested"), "{plan}");
    assert!(!plan.contains("Seq Scan on push_configs"), "{plan}");
    assert!(!plan.contains("Seq Scan on tasks"), "{plan}");
    store.unwrap().close().await.unwrap();
}

/// However long a session is, no more than the page of it is read.
#[tokio::test]
async fn entries_of_sessions_come_from_an_index_in_order() {
    let Some(database) = Database::new().await else {
        return;
    };
    let store = PostgresStore::open(&database.url(), PostgresOptions::default()).await;
    let client = database.client().await;
    let fill = "INSERT INTO nuncio.scopes (workspace, agent, caller) VALUES ('w', 'a', 'ada');
        INSERT INTO nuncio.sessions (scope, context, last, at_ms)
        SELECT 1, 'c' || n, 20, n FROM generate_series(1, 1000) n;
        INSERT INTO nuncio.session_entries (session, position, task, at_ms, body)
        SELECT n, p, 't', n, 'x' FROM generate_series(1, 1000) n, generate_series(1, 20) p;
        ANALYZE";
    client.batch_execute(fill).await.unwrap();
    let connector = Connector::new(&database.url(), &PostgresOptions::default()).unwrap();
    let connection = connector.open().await.unwrap();
    for direction in ["", "DESC"] {
        let explain = format!("EXPLAIN {}", entries_query(direction));
        let rows = connection
            .query(&explain, &[&"w", &"a", &"ada", &"c5", &3_i64, &10_i64])
            .await
            .unwrap();
        let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = lines.join("\n");
        assert!(plan.contains("session_entries_pkey on"), "{plan}");
        assert!(!plan.contains("Sort"), "{plan}");
        assert!(!plan.contains("Seq Scan on session"), "{plan}");
    }
    store.unwrap().close().await.unwrap();
}

async fn explain_all(database: &Database) {
    let connector = Connector::new(&database.url(), &PostgresOptions::default()).unwrap();
    let connection = connector.open().await.unwrap();
    let scope = scope();
    let key = PageKey {
        status_time: Timestamp::from_unix_ms(2),
        task: "t".into(),
    };
    for bits in 0..24_u8 {
        let filter = ListFilter {
            context: (bits & 1 != 0).then(|| "c1".into()),
            state: [None, Some(TaskState::Working), Some(TaskState::Completed)]
                [usize::from(bits >> 3)],
            not_before: (bits & 2 != 0).then(|| Timestamp::from_unix_ms(1)),
        };
        let query = Query::of(&scope, &filter, (bits & 4 != 0).then_some(&key), 50);
        let explain = format!("EXPLAIN {}", query.sql);
        let rows = connection
            .query(&explain, &query.parameters())
            .await
            .unwrap();
        let lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = lines.join("\n");
        assert!(!plan.contains("Seq Scan"), "{plan}");
        let page = part(&lines, "CTE page");
        let index = match (&filter.context, filter.state) {
            (Some(_), _) => "tasks_by_context",
            (None, Some(TaskState::Working)) => "tasks_by_state",
            (None, _) => "tasks_by_time",
        };
        assert!(page.contains(&format!("using {index} ")), "{plan}");
        assert_eq!(page.contains("Sort"), filter.context.is_some(), "{plan}");
    }
}

/// The lines of a plan below one, which are further in.
fn part(lines: &[String], head: &str) -> String {
    let depth = |line: &String| line.len() - line.trim_start().len();
    let mut rest = lines.iter().skip_while(|line| line.trim() != head);
    let outer = rest.next().map_or(0, depth);
    let part: Vec<&str> = rest
        .take_while(|line| depth(line) > outer)
        .map(String::as_str)
        .collect();
    part.join("\n")
}
