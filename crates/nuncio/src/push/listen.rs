//! `nuncio push listen`: a receiver for development.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nuncio_egress::{Egress, EgressPolicy, EgressRequest, Timeouts};
use nuncio_engine::SystemClock;
use nuncio_protocol::Clock as _;
use nuncio_protocol::webhook::WebhookVerifier;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use url::Url;

use super::notification::{Notification, Trust};
use crate::arguments::PushListenArguments;
use crate::client::{OutputFormat, Printer, block_on};
use crate::outcome::{Failure, Outcome, print, warn};
use crate::signals::Signals;
use crate::webhook::verifier;

/// Bytes of a notification.
const MAX_BODY: usize = 8 << 20;

/// How long the one it is passed on to may take; less than the sender waits.
const FORWARD_TIME: Duration = Duration::from_secs(10);

/// Connections at once.
const MAX_CONNECTIONS: usize = 64;

/// What every connection needs.
struct Receiver {
    verifier: WebhookVerifier,
    forward_to: Option<Url>,
    egress: Egress,
    printer: Printer,
    /// Tells when what is printed reaches nobody any more.
    ended: mpsc::Sender<Failure>,
}

/// Receives until a signal comes.
pub(super) fn run(arguments: &PushListenArguments) -> Outcome {
    let verifier = verifier(&arguments.trust)?;
    let forward_to = arguments.forward_to.as_deref().map(address).transpose()?;
    let egress = Egress::new(EgressPolicy::open())
        .map_err(|error| Failure::internal(format!("failed to prepare forwarding: {error}")))?;
    let (ended, ends) = mpsc::channel(1);
    let receiver = Arc::new(Receiver {
        verifier,
        forward_to,
        egress,
        printer: Printer::new(arguments.output, false, false),
        ended,
    });
    block_on(serve(receiver, arguments, ends))
}

fn address(text: &str) -> Outcome<Url> {
    let url = Url::parse(text).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        Failure::usage(format!(
            "failed to read --forward-to: \"{text}\" is no http or https URL"
        ))
        .hint("for example --forward-to http://127.0.0.1:3000/hook")
    })
}

async fn serve(
    receiver: Arc<Receiver>,
    arguments: &PushListenArguments,
    mut ends: mpsc::Receiver<Failure>,
) -> Outcome {
    let mut signals = Signals::listen()
        .map_err(|error| Failure::internal(format!("failed to listen to signals: {error}")))?;
    let listen = arguments.listen;
    let listener = TcpListener::bind(listen).await;
    let listener = listener.map_err(|error| {
        Failure::internal(format!("failed to listen on {listen}: {error}"))
            .hint("name a free port of this machine, or leave --listen out")
    })?;
    let at = listener
        .local_addr()
        .map_err(|error| Failure::internal(format!("failed to listen: {error}")))?;
    announce(arguments.output, &format!("http://{at}/"))?;
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        tokio::select! {
            () = signals.next() => return Ok(()),
            Some(failure) = ends.recv() => return Err(failure),
            accepted = listener.accept() => {
                let Ok((socket, _)) = accepted else { continue };
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { continue };
                let receiver = Arc::clone(&receiver);
                tokio::spawn(async move {
                    let answer = service_fn(|request| receiver.answer(request));
                    let served = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .serve_connection(TokioIo::new(socket), answer);
                    // A sender that goes away is its own affair.
                    let _ = served.await;
                    drop(place);
                });
            }
        }
    }
}

/// Says where notifications are received; in JSON to stderr, so that stdout has nothing else.
fn announce(format: OutputFormat, url: &str) -> Outcome {
    match format {
        OutputFormat::Text => print(&format!("URL: {url}\n"))?,
        OutputFormat::Json => warn(&format!("receiving at {url}\n"))?,
    }
    Ok(())
}

impl Receiver {
    async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        let (parts, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_BODY).collect().await else {
            return Ok(with(StatusCode::PAYLOAD_TOO_LARGE));
        };
        let notification = Notification {
            path: parts.uri.path().to_owned(),
            headers: parts.headers,
            body: body.to_bytes(),
        };
        let trust = notification.judge(&self.verifier, SystemClock.now());
        let (status, forwarded) = match (&trust, &self.forward_to) {
            (Trust::Invalid(_), _) => (StatusCode::UNAUTHORIZED, None),
            (_, None) => (StatusCode::NO_CONTENT, None),
            (_, Some(url)) => self.forward(&notification, url).await,
        };
        let printed = notification.print(self.printer, &trust, forwarded.as_deref());
        if let Err(failure) = printed {
            let _ = self.ended.try_send(failure);
        }
        Ok(with(status))
    }

    /// Passes a notification on; what comes of it is the answer.
    async fn forward(&self, from: &Notification, url: &Url) -> (StatusCode, Option<String>) {
        let mut request = EgressRequest::post(url.clone(), from.body.clone());
        request.timeouts = Timeouts::total(FORWARD_TIME);
        for (name, value) in &from.headers {
            if !is_of_connection(name) {
                request.headers.append(name, value.clone());
            }
        }
        match self.egress.send(request).await {
            Ok(response) => (
                response.status(),
                Some(response.status().as_str().to_owned()),
            ),
            Err(error) => (StatusCode::BAD_GATEWAY, Some(error.to_string())),
        }
    }
}

/// Whether a header belongs to the connection it came on, and to no other.
fn is_of_connection(name: &HeaderName) -> bool {
    [
        header::HOST,
        header::CONTENT_LENGTH,
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::TE,
    ]
    .contains(name)
}

fn with(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}
