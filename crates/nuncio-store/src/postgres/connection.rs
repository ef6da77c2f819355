//! One connection: set up for our purposes, with the statements it has prepared.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Socket, Statement};

use super::address::{Address, patience};
use super::failure::{Failure, reason, translate, unavailable};
use super::options::PostgresOptions;
use super::tls::{Secret, Tls};
use crate::StoreError;

/// A parameter of a statement.
pub(super) type Parameter<'a> = &'a (dyn ToSql + Sync);

/// What drives a connection.
pub(super) type Driver = tokio_postgres::Connection<Socket, Secret<Socket>>;

/// Settings of a session, whatever the server's defaults are.
///
/// No reply may leave before its commit is on disk; a stricter setting stays. Every statement here
/// is led by an index, however old the statistics are: a plan that reads a whole table is always
/// the wrong one.
const SET_UP: &str = "
    SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
    SET search_path = pg_catalog;
    SET default_transaction_isolation = 'read committed';
    SET idle_in_transaction_session_timeout = 0;
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET jit = off;
    SET client_min_messages = warning;";

/// How to connect; shared by all connections of a store.
#[derive(Debug)]
pub(super) struct Connector {
    address: Address,
    tls: Tls,
    options: PostgresOptions,
    /// Where connections are driven: that of whoever opened the store.
    runtime: Handle,
}

impl Connector {
    /// # Errors
    /// [`StoreError::Refused`] for a URL that does not do.
    pub(super) fn new(url: &str, options: &PostgresOptions) -> Result<Self, StoreError> {
        let address = Address::parse(url, options)?;
        Ok(Self {
            tls: Tls::new(&address.trust)?,
            address,
            options: options.clone(),
            runtime: Handle::current(),
        })
    }

    /// How long a call waits for its answer.
    pub(super) fn patience(&self) -> Duration {
        patience(&self.options)
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Connects; whoever takes the driver has to run it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(super) async fn connect(&self) -> Result<(Client, Driver), StoreError> {
        let connecting = self.address.config.connect(self.tls.clone());
        match timeout(self.patience(), connecting).await {
            Ok(Ok(made)) => Ok(made),
            Ok(Err(error)) => {
                tracing::warn!(error = %reason(&error), "the database cannot be reached");
                Err(translate(&error))
            }
            Err(_) => Err(unavailable("the database does not answer")),
        }
    }

    /// Connects and sets the session up.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`].
    pub(super) async fn open(&self) -> Result<Connection, StoreError> {
        let (client, driver) = self.connect().await?;
        self.runtime.spawn(async move {
            // What befalls it befalls the calls under way too, and is told there.
            let _ = driver.await;
        });
        self.set_up(&client).await?;
        Ok(Connection {
            client,
            statements: Mutex::default(),
            patience: self.patience(),
        })
    }

    pub(super) async fn set_up(&self, client: &Client) -> Result<(), StoreError> {
        let limit = self.options.statement_timeout.as_millis();
        let settings = format!("{SET_UP} SET statement_timeout = {limit};");
        let set = timeout(self.patience(), client.batch_execute(&settings));
        let set = set.await.map_err(|_| Failure::Late);
        set.and_then(|set| set.map_err(Failure::Sql))
            .map_err(|failure| failure.told("setting up a connection"))
    }
}

/// An open connection.
pub(super) struct Connection {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
    patience: Duration,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Runs a statement, prepared if it has been before; outside of a transaction it is one.
    ///
    /// The rows come once it is committed.
    pub(super) async fn query(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let run = async {
            let statement = self.prepared(sql).await?;
            self.client.query(&statement, parameters).await
        };
        Ok(timeout(self.patience, run)
            .await
            .map_err(|_| Failure::Late)??)
    }

    async fn prepared(&self, sql: &str) -> Result<Statement, tokio_postgres::Error> {
        if let Some(statement) = self.statements.lock().get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).await?;
        let mut statements = self.statements.lock();
        Ok(statements
            .entry(sql.to_owned())
            .or_insert(statement)
            .clone())
    }
}
