//! Connections that come back: each place in a pool holds one, or tries to.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_postgres::Row;

use super::connection::{Connection, Connector, Parameter};
use super::failure::{Failure, Remedy, unavailable};
use crate::StoreError;

/// Waits between attempts to connect double from the first to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How often a statement is repeated that others were in the way of.
pub(super) const MAX_REPEATS: u32 = 10;

/// A place for one connection.
#[derive(Debug)]
pub(super) struct Link {
    connector: Arc<Connector>,
    state: Mutex<State>,
    in_flight: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Arc<Connection>>,
    pause: Duration,
    /// Until then nobody tries.
    not_before: Option<Instant>,
}

impl Link {
    pub(super) fn new(connector: Arc<Connector>) -> Self {
        Self {
            connector,
            state: Mutex::default(),
            in_flight: AtomicUsize::new(0),
        }
    }

    /// The connection, made anew if there is none.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], at once if an attempt has failed a moment ago.
    async fn connection(&self) -> Result<Arc<Connection>, StoreError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection
            && !connection.is_closed()
        {
            return Ok(Arc::clone(connection));
        }
        state.connection = None;
        if state.not_before.is_some_and(|time| Instant::now() < time) {
            return Err(unavailable("the database cannot be reached"));
        }
        // On the runtime that drives connections, which may outlive that of the caller.
        let connector = Arc::clone(&self.connector);
        let opening = self
            .connector
            .runtime()
            .spawn(async move { connector.open().await });
        let opened = opening.await.unwrap_or(Err(StoreError::Closed));
        match opened {
            Ok(connection) => {
                let connection = Arc::new(connection);
                *state = State {
                    connection: Some(Arc::clone(&connection)),
                    ..State::default()
                };
                Ok(connection)
            }
            Err(error) => {
                state.pause = (state.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                state.not_before = Some(Instant::now() + state.pause);
                Err(error)
            }
        }
    }

    /// As [`Link::connection`], within the time that a call waits.
    pub(super) async fn connection_in_time(&self) -> Result<Arc<Connection>, Failure> {
        let connecting = timeout(self.connector.patience(), self.connection());
        Ok(connecting.await.map_err(|_| Failure::Late)??)
    }

    /// Gives a connection up that is of no use any more.
    pub(super) async fn discard(&self, useless: &Arc<Connection>) {
        let mut state = self.state.lock().await;
        if let Some(current) = &state.connection
            && Arc::ptr_eq(current, useless)
        {
            state.connection = None;
        }
    }

    async fn query(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Failure> {
        let connection = self.connection_in_time().await?;
        let result = connection.query(sql, parameters).await;
        if let Err(failure) = &result
            && failure.remedy() == Remedy::NewConnection
        {
            self.discard(&connection).await;
        }
        result
    }

    /// Closes the connection once nobody uses it.
    async fn close(&self) {
        self.state.lock().await.connection = None;
    }
}

/// A pool: each statement goes to the connection with the fewest under way.
#[derive(Debug)]
pub(super) struct Links {
    links: Vec<Link>,
    closed: AtomicBool,
}

/// Counts a statement under way, even if its future is dropped.
struct UnderWay<'a>(&'a Link);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Links {
    pub(super) fn new(connector: &Arc<Connector>, count: usize) -> Self {
        Self {
            links: (0..count.max(1))
                .map(|_| Link::new(Arc::clone(connector)))
                .collect(),
            closed: AtomicBool::new(false),
        }
    }

    /// Runs a statement that only reads; if its connection breaks, once more on another.
    ///
    /// # Errors
    /// In the words of the store.
    pub(super) async fn read(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let failure = match self.run(sql, parameters).await {
            Err(failure @ Failure::Sql(_)) if failure.remedy() == Remedy::NewConnection => failure,
            result => return result.map_err(|failure| failure.told("reading from the store")),
        };
        tracing::debug!(?failure, "a read is repeated on a new connection");
        let again = self.run(sql, parameters).await;
        again.map_err(|failure| failure.told("reading from the store"))
    }

    /// Runs a statement that writes; it is repeated only if it certainly has not written.
    ///
    /// # Errors
    /// In the words of the store. If the connection broke, whether it has written is unknown.
    pub(super) async fn write(
        &self,
        sql: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        for _ in 0..MAX_REPEATS {
            match self.run(sql, parameters).await {
                Err(failure) if failure.remedy() == Remedy::Again => {}
                result => return result.map_err(|failure| failure.told("writing to the store")),
            }
        }
        Err(unavailable("busy"))
    }

    async fn run(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Failure> {
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed.into());
        }
        let load = |link: &&Link| link.in_flight.load(Ordering::Relaxed);
        let Some(link) = self.links.iter().min_by_key(load) else {
            return Err(StoreError::Closed.into());
        };
        link.in_flight.fetch_add(1, Ordering::Relaxed);
        let _under_way = UnderWay(link);
        link.query(sql, parameters).await
    }

    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for link in &self.links {
            link.close().await;
        }
    }
}
