//! Accepting connections and serving them, on one runtime or spread over workers.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::ClientCertificate;
use crate::io::{GuardedIo, Patience, Requests};
use crate::workers::Workers;
use crate::{ResponseBody, Server, Settings};

/// What hyper allows if nothing is set.
const HYPER_MAX_HEADERS: usize = 100;
const MAX_H2_STREAMS: u32 = 128;
const MAX_H2_HEADER_LIST_BYTES: u32 = 16 << 10;
const H2_PING: Duration = Duration::from_secs(20);
const H2_PONG: Duration = Duration::from_secs(20);
/// How long a connection may wait for one more request while the server stops: its answer lets go of
/// the connection, where an end in between could cross the request on its way.
const LINGER: Duration = Duration::from_millis(500);
/// The wait after an accept that failed for want of something, file descriptors mostly.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How connections are served.
pub(crate) struct Connections {
    http: auto::Builder<TokioExecutor>,
    patience: Patience,
    places: Arc<Semaphore>,
}

impl Connections {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut http = auto::Builder::new(TokioExecutor::new());
        // Header and idle deadlines are GuardedIo's: hyper's own covers the pause between
        // requests too, and costs a timer for each of them.
        http.http1()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_buf_size(settings.max_head_bytes.max(8 << 10));
        // Setting even the default moves hyper's table of headers from stack to heap.
        if settings.max_headers != HYPER_MAX_HEADERS {
            http.http1().max_headers(settings.max_headers);
        }
        http.http2()
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_H2_STREAMS)
            .max_header_list_size(MAX_H2_HEADER_LIST_BYTES)
            .keep_alive_interval(H2_PING)
            .keep_alive_timeout(H2_PONG);
        Self {
            http,
            patience: Patience {
                head: settings.head_timeout,
                keep_alive: settings.keep_alive,
                write: settings.write_timeout,
            },
            places: Arc::new(Semaphore::new(settings.max_connections)),
        }
    }
}

impl Server {
    /// Serves connections on the current runtime until `shutdown`, then sees them end.
    ///
    /// Streams end with a comment so that their readers resume elsewhere; requests in flight may
    /// go on for [`Settings::drain_timeout`].
    ///
    /// # Errors
    /// If the listener cannot be used at all.
    pub async fn run(&self, listener: TcpListener, shutdown: CancellationToken) -> io::Result<()> {
        self.accept(listener, shutdown, None).await
    }

    /// As [`Server::run`], with each connection on the worker that has the fewest.
    ///
    /// A connection stays on its worker's thread: no request crosses threads.
    ///
    /// # Errors
    /// As [`Server::run`].
    pub async fn run_on_workers(
        &self,
        listener: TcpListener,
        workers: &Workers,
        shutdown: CancellationToken,
    ) -> io::Result<()> {
        self.accept(listener, shutdown, Some(workers)).await
    }

    async fn accept(
        &self,
        listener: TcpListener,
        shutdown: CancellationToken,
        workers: Option<&Workers>,
    ) -> io::Result<()> {
        listener.local_addr()?;
        let open = Open {
            connections: TaskTracker::new(),
            abort: CancellationToken::new(),
            workers,
        };
        let mut stopping = pin!(shutdown.cancelled());
        loop {
            let (stream, peer, place) = tokio::select! {
                () = &mut stopping => break,
                accepted = self.next_connection(&listener) => accepted,
            };
            if let Ok(stream) = stream.into_std() {
                open.spawn(self.clone().serve(peer, place), stream);
            }
        }
        self.end_streams();
        self.accept_waiting(listener, &open)?;
        self.close();
        open.end(self.settings().drain_timeout).await;
        Ok(())
    }

    /// Takes the connections that peers have made already, then closes the listener: its end would
    /// cut them off without a word.
    fn accept_waiting(&self, listener: TcpListener, open: &Open<'_>) -> io::Result<()> {
        let listener = listener.into_std()?;
        let places = &self.connections().places;
        while let Ok((stream, peer)) = listener.accept() {
            let Ok(place) = Arc::clone(places).try_acquire_owned() else {
                break;
            };
            if stream.set_nonblocking(true).is_ok() {
                open.spawn(self.clone().serve(peer, place), stream);
            }
        }
        Ok(())
    }

    async fn next_connection(
        &self,
        listener: &TcpListener,
    ) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
        let places = Arc::clone(&self.connections().places);
        let place = places
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => return (stream, peer, place),
                Err(error) if is_peers_fault(&error) => {}
                Err(error) => {
                    tracing::error!(%error, "failed to accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn serve(self, peer: SocketAddr, place: OwnedSemaphorePermit) -> Connection {
        Connection {
            server: self,
            peer,
            _place: place,
        }
    }
}

/// The connections of a listener.
struct Open<'a> {
    connections: TaskTracker,
    /// Cuts them off.
    abort: CancellationToken,
    workers: Option<&'a Workers>,
}

impl Open<'_> {
    /// Serves a connection here, or on the worker that has the fewest.
    fn spawn(&self, served: Connection, stream: std::net::TcpStream) {
        let chosen = self.workers.map(Workers::least_busy);
        let (worker, count) = chosen.unzip();
        let task = async move {
            let _count = count;
            if let Ok(stream) = TcpStream::from_std(stream) {
                served.on(stream).await;
            }
        };
        let task = self.abort.clone().run_until_cancelled_owned(task);
        match worker {
            None => self.connections.spawn(task),
            Some(worker) => self.connections.spawn_on(task, worker),
        };
    }

    /// Waits for their ends; those that take longer than `patience` are cut off.
    async fn end(self, patience: Duration) {
        self.connections.close();
        let ended = tokio::time::timeout(patience, self.connections.wait()).await;
        if ended.is_err() {
            tracing::warn!(
                connections = self.connections.len(),
                "requests in flight are cut off"
            );
            self.abort.cancel();
            self.connections.wait().await;
        }
    }
}

fn is_peers_fault(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// A connection to be served, wherever its socket ends up.
struct Connection {
    server: Server,
    peer: SocketAddr,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn on(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = &self.server.settings().tls else {
            return self.serve_on(stream, None).await;
        };
        // A handshake is as long as a head may be.
        let patience = self.server.connections().patience.head;
        match tokio::time::timeout(patience, tls.accept(stream)).await {
            // Boxed, so that connections without TLS do not keep room for its state.
            Ok(Ok((stream, certificate))) => Box::pin(self.serve_on(stream, certificate)).await,
            Ok(Err(error)) => tracing::debug!(%error, "no TLS handshake"),
            Err(_) => tracing::debug!("the TLS handshake took too long"),
        }
    }

    async fn serve_on<S>(&self, stream: S, certificate: Option<ClientCertificate>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let server = &self.server;
        let connections = server.connections();
        let requests = Arc::new(Requests::new());
        let io = GuardedIo::new(stream, Arc::clone(&requests), connections.patience);
        let requests = Handler {
            server: server.clone(),
            peer: self.peer,
            certificate,
            requests,
        };
        let served = connections
            .http
            .serve_connection(TokioIo::new(io), requests);
        let mut served = pin!(served);
        let lingering = async {
            server.closing().cancelled().await;
            tokio::time::sleep(LINGER).await;
        };
        let ended = tokio::select! {
            ended = served.as_mut() => ended,
            () = lingering => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended");
        }
    }
}

/// The requests of one connection.
struct Handler {
    server: Server,
    peer: SocketAddr,
    certificate: Option<ClientCertificate>,
    requests: Arc<Requests>,
}

impl hyper::service::Service<Request<Incoming>> for Handler {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    // Boxed, so that an idle stream does not keep the room of a request at work.
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        if let Some(certificate) = self.certificate {
            request.extensions_mut().insert(certificate);
        }
        let in_flight = self.requests.begin();
        let server = self.server.clone();
        let peer = self.peer.ip();
        let one = request.version() < http::Version::HTTP_2;
        Box::pin(async move {
            let mut reply = server.handle(request, Some(peer)).await;
            reply.body_mut().hold(in_flight);
            if one && server.leaving().is_cancelled() {
                let close = HeaderValue::from_static("close");
                reply.headers_mut().insert(CONNECTION, close);
            }
            Ok(reply)
        })
    }
}
