//! A fake agent that speaks one version over all bindings, HTTP/1.1 and HTTP/2 on one port.
//!
//! Its words are those of the dialects, as servers use them; what peers spell otherwise is the
//! business of `support::Fake`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use nuncio_client::{Client, ClientBuilder};
use nuncio_protocol::dialect::{self, StreamKind};
use nuncio_protocol::grpc::{encode_status, frame};
use nuncio_protocol::v1::json_rpc as envelope;
use nuncio_protocol::{
    A2aError, AgentCard, AgentInterface, Binding, ErrorKind, Event, Operation, OperationKind,
    Outcome, StatusProfile, StreamResponse, Version,
};
use tokio::net::TcpListener;

use crate::support::builder;

/// Every binding in every version.
pub(crate) const ALL: [(Binding, Version); 6] = [
    (Binding::JsonRpc, Version::V1_0),
    (Binding::HttpJson, Version::V1_0),
    (Binding::Grpc, Version::V1_0),
    (Binding::JsonRpc, Version::V0_3),
    (Binding::HttpJson, Version::V0_3),
    (Binding::Grpc, Version::V0_3),
];

type Body = BoxBody<Bytes, std::io::Error>;

/// What the agent was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) operation: Operation,
    pub(crate) headers: HeaderMap,
    pub(crate) path: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What it answers.
#[expect(clippy::large_enum_variant, reason = "there is one of them at a time")]
pub(crate) enum Reply {
    Outcome(Outcome),
    Error(A2aError),
    /// These items, then an end.
    Stream(Vec<StreamResponse>, End),
    /// Whatever is no answer of the protocol.
    Raw(Response<Body>),
}

/// How a stream ends.
pub(crate) enum End {
    Well,
    Error(A2aError),
    /// The connection breaks.
    Cut,
    Never,
}

type Script = Arc<Mutex<dyn FnMut(&Asked) -> Reply + Send>>;

/// A fake agent on a free port.
pub(crate) struct Agent {
    /// Host and port.
    pub(crate) address: String,
    version: Version,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Agent {
    pub(crate) async fn start(
        version: Version,
        script: impl FnMut(&Asked) -> Reply + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let script: Script = Arc::new(Mutex::new(script));
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
                tokio::spawn(async move {
                    let service = service_fn(move |request| {
                        answer(version, request, Arc::clone(&seen), Arc::clone(&script))
                    });
                    let server = auto::Builder::new(TokioExecutor::new());
                    let io = TokioIo::new(socket);
                    let _ = server.serve_connection(io, service).await;
                });
            }
        });
        Self {
            address,
            version,
            asked,
        }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn kinds(&self) -> Vec<OperationKind> {
        self.asked().iter().map(|a| a.operation.kind()).collect()
    }

    pub(crate) fn interface(&self, binding: Binding) -> AgentInterface {
        let url = match binding {
            Binding::Grpc => self.address.clone(),
            _ => format!("http://{}/a2a", self.address),
        };
        let mut interface = AgentInterface::new(url, binding);
        interface.protocol_version = self.version.to_string();
        interface
    }

    /// A card with one interface at this agent.
    pub(crate) fn card(&self, binding: Binding) -> AgentCard {
        let mut card = AgentCard::default();
        card.name = "agent".to_owned();
        card.capabilities.streaming = Some(true);
        card.supported_interfaces.push(self.interface(binding));
        card
    }

    pub(crate) fn client(&self, binding: Binding) -> Client {
        self.client_of(builder(), binding)
    }

    pub(crate) fn client_of(&self, builder: ClientBuilder, binding: Binding) -> Client {
        builder.build(self.card(binding)).unwrap()
    }
}

/// How the request came, and how it is to be answered.
enum Way {
    JsonRpc(envelope::RequestId),
    Rest,
    Grpc,
}

async fn answer(
    version: Version,
    request: Request<Incoming>,
    seen: Arc<Mutex<Vec<Asked>>>,
    script: Script,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let is_grpc =
        parts.headers.get("content-type") == Some(&HeaderValue::from_static("application/grpc"));
    let (way, operation) = if is_grpc {
        (Way::Grpc, read_grpc(version, parts.uri.path(), &body))
    } else if parts.uri.path() == "/a2a" {
        let request = envelope::Request::decode(&body).unwrap();
        let dialect = dialect::json_rpc(version);
        let operation = match dialect.kind(&request.method) {
            Some(kind) => dialect.decode_params(kind, request.params),
            None => Err(no_method()),
        };
        (Way::JsonRpc(request.id), operation)
    } else {
        let path = parts.uri.path().strip_prefix("/a2a").unwrap();
        let dialect = dialect::rest(version);
        let operation = match dialect.route(parts.method.as_str(), path) {
            Ok(route) => dialect.decode_request(&route, parts.uri.query(), &body),
            Err(_) => Err(no_method()),
        };
        (Way::Rest, operation)
    };
    Ok(match operation {
        Err(error) => write(version, &way, OperationKind::GetTask, Reply::Error(error)),
        Ok(operation) => {
            let asked = Asked {
                operation,
                headers: parts.headers,
                path: parts.uri.path().to_owned(),
            };
            let reply = (script.lock().unwrap())(&asked);
            let kind = asked.operation.kind();
            seen.lock().unwrap().push(asked);
            write(version, &way, kind, reply)
        }
    })
}

fn no_method() -> A2aError {
    A2aError::new(ErrorKind::MethodNotFound, "no such method")
}

fn read_grpc(version: Version, path: &str, body: &[u8]) -> Result<Operation, A2aError> {
    let dialect = dialect::grpc(version);
    let method = path.strip_prefix(&format!("/{}/", dialect.service()));
    let kind = method.and_then(|method| dialect.kind(method));
    let mut decoder = frame::FrameDecoder::new(body.len());
    decoder.push(body);
    let message = decoder.next_message()?.unwrap();
    dialect.decode_request(kind.ok_or_else(no_method)?, &message)
}

fn write(version: Version, way: &Way, kind: OperationKind, reply: Reply) -> Response<Body> {
    match reply {
        Reply::Raw(response) => response,
        Reply::Outcome(outcome) => write_outcome(version, way, kind, &outcome),
        Reply::Error(error) => write_error(version, way, &error),
        Reply::Stream(items, end) => write_stream(version, way, kind, &items, end),
    }
}

fn json(status: u16, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
    Response::builder()
        .status(status)
        .header("content-type", "application/json")
        .body(body.boxed())
        .unwrap()
}

fn write_outcome(
    version: Version,
    way: &Way,
    kind: OperationKind,
    outcome: &Outcome,
) -> Response<Body> {
    match way {
        Way::JsonRpc(id) => {
            let result = dialect::json_rpc(version).encode_result(kind, outcome);
            json(200, envelope::encode_result(id, &result.unwrap()))
        }
        Way::Rest => json(
            200,
            dialect::rest(version).encode_result(kind, outcome).unwrap(),
        ),
        Way::Grpc => {
            let message = dialect::grpc(version).encode_result(kind, outcome).unwrap();
            grpc(vec![Ok(frame::encode(&message))], Some(ok()))
        }
    }
}

fn write_error(version: Version, way: &Way, error: &A2aError) -> Response<Body> {
    let status = error.kind.http_status(StatusProfile::V1_0_1);
    match way {
        Way::JsonRpc(id) => {
            let object = dialect::json_rpc(version).encode_error(error);
            json(200, envelope::encode_failure(id, &object))
        }
        Way::Rest => {
            let dialect = dialect::rest(version);
            json(status, dialect.encode_error(error, StatusProfile::V1_0_1))
        }
        Way::Grpc => trailers_only(error),
    }
}

/// A status and nothing else.
pub(crate) fn trailers_only(error: &A2aError) -> Response<Body> {
    let mut response = grpc(Vec::new(), None);
    response.headers_mut().extend(status(error));
    response
}

/// Pieces of a body with the trailers after them.
pub(crate) fn grpc(
    pieces: Vec<Result<Bytes, std::io::Error>>,
    trailers: Option<HeaderMap>,
) -> Response<Body> {
    let frames = pieces.into_iter().map(|piece| piece.map(Frame::data));
    let trailers = trailers.map(|trailers| Ok(Frame::trailers(trailers)));
    let frames: Vec<_> = frames.chain(trailers).collect();
    Response::builder()
        .status(StatusCode::OK)
        .header("content-type", "application/grpc")
        .body(BoxBody::new(StreamBody::new(stream::iter(frames))))
        .unwrap()
}

pub(crate) fn ok() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    trailers
}

pub(crate) fn status(error: &A2aError) -> HeaderMap {
    use base64::Engine as _;
    let status = encode_status(error, StatusProfile::V1_0_1);
    let details = base64::engine::general_purpose::STANDARD.encode(status.details_bin);
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", status.code.into());
    let message = frame::encode_message(&status.message);
    trailers.insert("grpc-message", message.try_into().unwrap());
    trailers.insert("grpc-status-details-bin", details.try_into().unwrap());
    trailers
}

fn write_stream(
    version: Version,
    way: &Way,
    kind: OperationKind,
    items: &[StreamResponse],
    end: End,
) -> Response<Body> {
    let kind = StreamKind::of(kind);
    let events = items.iter().map(|item| Event::from(item.clone()));
    let piece = |event: Event| match way {
        Way::JsonRpc(id) => {
            let item = dialect::json_rpc(version).encode_event(&event, kind);
            sse(&envelope::encode_result(id, &item))
        }
        Way::Rest => sse(&dialect::rest(version).encode_event(&event, kind)),
        Way::Grpc => frame::encode(&dialect::grpc(version).encode_event(&event, kind).unwrap()),
    };
    let mut frames: Vec<_> = events.map(|event| Ok(Frame::data(piece(event)))).collect();
    let mut last: Pin<Box<dyn Stream<Item = _> + Send + Sync>> = Box::pin(stream::empty());
    match (way, end) {
        (_, End::Cut) => {
            last = Box::pin(stream::once(async {
                // What is written must leave before the connection breaks.
                tokio::task::yield_now().await;
                Err(std::io::Error::other("cut"))
            }));
        }
        (_, End::Never) => last = Box::pin(stream::pending()),
        (Way::Grpc, End::Well) => frames.push(Ok(Frame::trailers(ok()))),
        (_, End::Well) => {}
        (Way::Grpc, End::Error(error)) => frames.push(Ok(Frame::trailers(status(&error)))),
        (Way::Rest, End::Error(error)) => {
            let dialect = dialect::rest(version);
            let text = dialect.encode_error(&error, StatusProfile::V1_0_1);
            frames.push(Ok(Frame::data(sse(&text))));
        }
        (Way::JsonRpc(id), End::Error(error)) => {
            let object = dialect::json_rpc(version).encode_error(&error);
            let text = envelope::encode_failure(id, &object);
            frames.push(Ok(Frame::data(sse(&text))));
        }
    }
    let content_type = match way {
        Way::Grpc => "application/grpc",
        _ => "text/event-stream",
    };
    let frames = stream::iter(frames).chain(last);
    Response::builder()
        .header("content-type", content_type)
        .body(BoxBody::new(StreamBody::new(frames)))
        .unwrap()
}

fn sse(text: &str) -> Bytes {
    format!("data: {text}\n\n").into()
}
