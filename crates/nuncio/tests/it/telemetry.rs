//! Spans: one trace over the servers of a chain of agents, told to a collector.

use std::collections::HashSet;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::json;

use crate::fake::Fake;
use crate::support::{Server, exchange, until};

fn collector() -> Fake {
    Fake::bare(|_| ("200 OK", "application/x-protobuf", String::new()))
}

/// What a collector has been told, with the name of the service.
fn told(collector: &Fake) -> Vec<(String, Span)> {
    let mut spans = Vec::new();
    for request in collector.requests() {
        assert!(
            request.line.starts_with("POST /v1/traces "),
            "{}",
            request.line
        );
        assert_eq!(request.header("x-tenant"), Some("t1"));
        let export = ExportTraceServiceRequest::decode(&*request.bytes).unwrap();
        for of_resource in export.resource_spans {
            let resource = of_resource.resource.unwrap();
            let name = resource
                .attributes
                .iter()
                .find(|pair| pair.key == "service.name");
            let name = match name.unwrap().value.clone().unwrap().value {
                Some(Any::StringValue(name)) => name,
                other => panic!("{other:?}"),
            };
            let of_scopes = of_resource.scope_spans.into_iter();
            let found = of_scopes.flat_map(|of_scope| of_scope.spans);
            spans.extend(found.map(|span| (name.clone(), span)));
        }
    }
    spans
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn config(name: &str, collector: &Fake, agent: &str) -> String {
    format!(
        "[outbound]\nallow_networks = [\"127.0.0.0/8\"]\n\
         [webhooks]\nallow_networks = [\"127.0.0.0/8\"]\n\
         [telemetry]\notlp_endpoint = \"{}\"\nservice_name = \"{name}\"\nheaders = {{ X-Tenant = \"t1\" }}\n\
         [[agents]]\nid = \"{name}\"\n{agent}\n",
        collector.url
    )
}

/// BR-180, U08: server, agent, the calls that it makes and the webhooks are one trace over three
/// servers and three bindings, without an orphan, also for a call that is answered at once; each is
/// told of its task.
#[test]
fn br_180_a_chain_of_servers_is_one_trace() {
    let (collector, receiver) = (
        collector(),
        Fake::bare(|_| ("200 OK", "text/plain", String::new())),
    );
    let last = Server::configured(&config("last", &collector, "kind = \"echo\""));
    let remote = |url: &str, more: &str| format!("kind = \"a2a\"\nurl = \"{url}\"\n{more}");
    let middle = remote(&last.url, "binding = \"GRPC\"");
    let middle = Server::configured(&config("middle", &collector, &middle));
    let first = remote(&middle.url, "binding = \"HTTP+JSON\"\nprotocol = \"0.3\"");
    let first = Server::configured(&config("first", &collector, &first));
    let message = json!({"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}]});
    let configuration = json!({"returnImmediately": true,
        "taskPushNotificationConfig": {"url": receiver.url}});
    let params = json!({"message": message, "configuration": configuration});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params});
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let traceparent = format!("00-{trace}-00f067aa0ba902b7-01");
    let headers = [
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
        ("traceparent", traceparent.as_str()),
    ];
    let sent = exchange(&first.url, "POST", "/", &headers, &body.to_string()).json();
    let task = sent["result"]["task"]["id"].as_str().unwrap().to_owned();

    let has = |spans: &[(String, Span)], service: &str, name: &str| {
        spans
            .iter()
            .any(|(of, span)| of == service && span.name == name)
    };
    let expected = [
        ("first", "SendMessage"),
        ("first", "invoke_agent first"),
        ("first", "push_notification"),
        ("middle", "SendStreamingMessage"),
        ("middle", "invoke_agent middle"),
        ("last", "SendStreamingMessage"),
        ("last", "invoke_agent last"),
    ];
    let ended = || {
        let ended = |body: &str| body.contains("TASK_STATE_COMPLETED");
        receiver
            .requests()
            .iter()
            .any(|request| ended(&request.body))
    };
    until(|| {
        let spans = told(&collector);
        expected
            .iter()
            .all(|(service, name)| has(&spans, service, name))
            && ended()
    });
    // The cards that each has read are no part of anybody's call.
    let spans: Vec<_> = told(&collector);
    let ids: HashSet<_> = spans.iter().map(|(_, span)| span.span_id.clone()).collect();
    for (service, span) in &spans {
        assert_eq!(hex(&span.trace_id), trace, "{service}: {span:?}");
        let outside = hex(&span.parent_span_id) == "00f067aa0ba902b7";
        assert!(
            outside || ids.contains(&span.parent_span_id),
            "an orphan: {service} {span:?}"
        );
        let of_task = span.attributes.iter().any(|pair| pair.key == "a2a.task.id");
        assert!(of_task, "{service}: {span:?}");
        assert!(
            !format!("{span:?}").contains("hello"),
            "content is not told"
        );
    }
    for request in receiver.requests() {
        let said = request.header("traceparent").unwrap();
        assert!(said.starts_with(&format!("00-{trace}-")), "{said}");
        let span = said.split('-').nth(2).unwrap();
        assert!(
            ids.iter().any(|id| hex(id) == span),
            "each call is a span of its own"
        );
        assert!(request.body.contains(&task));
    }
}

/// A collector that is not there, or is slow, changes nothing for callers; what it refuses is told
/// in the log.
#[test]
fn a_collector_that_is_down_is_in_nobodys_way() {
    let down = Fake::bare(|_| ("400 Bad Request", "text/plain", "no".to_owned()));
    let server = Server::configured(&config("echo", &down, "kind = \"echo\""));
    let said = server.send(&["hello"]).exits(0);
    assert!(said.out.contains("hello"), "{}", said.out);
    until(|| server.log().contains("the collector does not take spans"));
}
