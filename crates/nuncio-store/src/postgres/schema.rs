//! The shape of the database, and how an older one becomes a newer one.

use tokio_postgres::Client;

use super::connection::Connector;
use super::failure::Failure;
use super::link::Links;
use super::rows::column;
use crate::StoreError;

/// The steps from nothing to the newest shape; `schema_version` has the number of each taken.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_tasks.sql"),
    include_str!("migrations/0002_write.sql"),
    include_str!("migrations/0003_retention.sql"),
    include_str!("migrations/0004_deliveries.sql"),
    include_str!("migrations/0005_sessions.sql"),
    include_str!("migrations/0006_owned.sql"),
];

/// The step since which there are sessions.
pub(super) const SESSIONS: usize = 5;

/// How many steps there are.
pub(super) const KNOWN: usize = MIGRATIONS.len();

/// The step since which a log may be compacted.
pub(super) const RETENTION: usize = 3;

/// Whoever changes the schema holds this lock of the database: "nuncio" as a number.
const LOCK: i64 = 0x6e75_6e63_696f;

/// How long replicas that start together wait for the one that changes the schema.
const PATIENCE_SECONDS: u32 = 300;

/// Brings the database to the newest shape; replicas that start together take turns.
///
/// # Errors
/// [`StoreError::Refused`] for a schema of something else or of a newer version, which is left as
/// it is; else as the database fails.
pub(super) async fn prepare(connector: &Connector) -> Result<(), StoreError> {
    let connection = connector.open().await?;
    let client = connection.client();
    warn_of_lazy_disks(client).await?;
    if recognise(client).await? == KNOWN {
        return Ok(());
    }
    // A connection that ends rolls back and lets the lock go, whatever comes between.
    let begin = format!(
        "SET statement_timeout = '{PATIENCE_SECONDS}s';
         BEGIN; SELECT pg_advisory_xact_lock({LOCK});"
    );
    run(client, &begin).await?;
    let taken = recognise(client).await?;
    run(
        client,
        "CREATE SCHEMA IF NOT EXISTS nuncio;
         CREATE TABLE IF NOT EXISTS nuncio.schema_version (
             version  int PRIMARY KEY,
             taken_at timestamptz NOT NULL DEFAULT clock_timestamp()
         );",
    )
    .await?;
    for (number, step) in (1..).zip(MIGRATIONS).skip(taken) {
        run(client, step).await?;
        let note = format!("INSERT INTO nuncio.schema_version (version) VALUES ({number})");
        run(client, &note).await?;
    }
    run(client, "COMMIT").await
}

/// Nothing here can make up for a server that does not sync.
async fn warn_of_lazy_disks(client: &Client) -> Result<(), StoreError> {
    let query = "SELECT current_setting('fsync') = 'on'";
    let row = client.query_one(query, &[]).await.map_err(failed)?;
    if !row.try_get::<_, bool>(0).map_err(failed)? {
        tracing::warn!("fsync is off at the database: a power cut there loses what was answered");
    }
    Ok(())
}

/// Looks whether the schema is absent or one of ours that we know, and gives its version.
///
/// # Errors
/// [`StoreError::Refused`] for a schema of something else or of a newer version.
pub(super) async fn recognise(client: &Client) -> Result<usize, StoreError> {
    let version = version(client).await?;
    if version > KNOWN {
        return Err(StoreError::Refused(format!(
            "the database has version {version}, this program knows {KNOWN}: use a newer nuncio"
        )));
    }
    Ok(version)
}

/// Looks whether the schema is absent or one of ours, and gives its version.
///
/// # Errors
/// [`StoreError::Refused`] for a schema of something else.
pub(super) async fn version(client: &Client) -> Result<usize, StoreError> {
    let query = "SELECT to_regclass('nuncio.schema_version') IS NOT NULL,
        EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                WHERE n.nspname = 'nuncio')";
    let row = client.query_one(query, &[]).await.map_err(failed)?;
    let (versioned, filled): (bool, bool) = (
        row.try_get(0).map_err(failed)?,
        row.try_get(1).map_err(failed)?,
    );
    if !versioned {
        return match filled {
            false => Ok(0),
            true => Err(StoreError::Refused(
                "the schema nuncio of the database is not one of nuncio".to_owned(),
            )),
        };
    }
    let query = "SELECT coalesce(max(version), 0) FROM nuncio.schema_version";
    let row = client.query_one(query, &[]).await.map_err(failed)?;
    let version: i32 = row.try_get(0).map_err(failed)?;
    Ok(usize::try_from(version).unwrap_or(0))
}

/// The secret that is there, else the fresh one, which is kept.
pub(super) async fn secret(links: &Links, fresh: &[u8; 32]) -> Result<[u8; 32], StoreError> {
    let make = "INSERT INTO nuncio.secrets (name, secret) VALUES ('tokens', $1)
        ON CONFLICT DO NOTHING";
    links.write(make, &[&fresh.as_slice()]).await?;
    let find = "SELECT secret FROM nuncio.secrets WHERE name = 'tokens'";
    let rows = links.read(find, &[]).await?;
    let secret = rows
        .first()
        .map(|row| column::<&[u8]>(row, 0))
        .transpose()?;
    let secret = secret.and_then(|secret| secret.try_into().ok());
    secret.ok_or_else(|| StoreError::Corrupt("a secret of another size".to_owned()))
}

async fn run(client: &Client, sql: &str) -> Result<(), StoreError> {
    client.batch_execute(sql).await.map_err(failed)
}

fn failed(error: tokio_postgres::Error) -> StoreError {
    Failure::Sql(error).told("preparing the database")
}
