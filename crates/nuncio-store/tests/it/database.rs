//! A PostgreSQL database for one test.

use std::time::Duration;

use tokio_postgres::{Client, NoTls};

/// What `scripts/postgres` puts into the environment; `None` only if the caller wants to do without.
#[expect(
    clippy::disallowed_methods,
    reason = "scripts/postgres says by the environment where its server is"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    let skipped = std::env::var("SKIP_POSTGRES").is_ok_and(|skip| skip == "1");
    assert!(
        value.is_some() || skipped,
        "{name} is not set: run `scripts/postgres cargo nextest run -p nuncio-store`, or set \
         SKIP_POSTGRES=1 to do without PostgreSQL"
    );
    value
}

/// An empty database; gone when dropped.
#[derive(Debug)]
pub(crate) struct Database {
    server: String,
    name: String,
}

impl Database {
    /// A new database; `None` if PostgreSQL is to be left out.
    pub(crate) async fn new() -> Option<Self> {
        let database = Self {
            server: variable("NUNCIO_TEST_POSTGRES")?,
            name: format!("test_{}", std::process::id()) + &unique(),
        };
        let create = format!("CREATE DATABASE {}", database.name);
        let server = connect(&database.server).await;
        server.batch_execute(&create).await.unwrap();
        Some(database)
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        let (server, _) = self.server.rsplit_once('/').unwrap();
        format!("{server}/{}", self.name)
    }

    /// What must not be shown.
    pub(crate) fn password(&self) -> String {
        let (user, _) = self.server.rsplit_once('@').unwrap();
        user.rsplit_once(':').unwrap().1.to_owned()
    }

    /// A connection beside those of the store.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.url()).await
    }

    /// Ends every other connection.
    pub(crate) async fn cut(&self) {
        let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()";
        self.client().await.execute(cut, &[]).await.unwrap();
    }
}

fn unique() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LAST: AtomicU32 = AtomicU32::new(0);
    format!("_{}", LAST.fetch_add(1, Ordering::Relaxed))
}

/// Connects; the driver ends with the client.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, driver) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(driver);
    client
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let dropping = async { connect(&server).await.batch_execute(&drop).await };
                let _ = tokio::time::timeout(Duration::from_secs(60), dropping).await;
            });
        });
        let _ = dropping.join();
    }
}
