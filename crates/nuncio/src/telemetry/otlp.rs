//! Spans as OTLP writes them.

use nuncio_protocol::{SpanRecord, SpanRole, Timestamp};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use serde_json::Value;

pub(super) fn request(service: &str, spans: Vec<SpanRecord>) -> ExportTraceServiceRequest {
    let resource = Resource {
        attributes: vec![
            text("service.name", service),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ],
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "nuncio".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let scope_spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.into_iter().map(span).collect(),
        schema_url: String::new(),
    };
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(resource),
            scope_spans: vec![scope_spans],
            schema_url: String::new(),
        }],
    }
}

fn span(record: SpanRecord) -> Span {
    let kind = match record.role {
        SpanRole::Server => SpanKind::Server,
        SpanRole::Client => SpanKind::Client,
        SpanRole::Producer => SpanKind::Producer,
        SpanRole::Internal => SpanKind::Internal,
    };
    let attributes = record.attributes.into_iter();
    let link = record.link.map(|other| Link {
        trace_id: other.trace_id.to_vec(),
        span_id: other.span_id.to_vec(),
        ..Link::default()
    });
    Span {
        trace_id: record.context.trace_id.to_vec(),
        span_id: record.context.span_id.to_vec(),
        parent_span_id: record.parent.map(Vec::from).unwrap_or_default(),
        name: record.name,
        kind: kind.into(),
        start_time_unix_nano: nanoseconds(record.started),
        end_time_unix_nano: nanoseconds(record.ended),
        attributes: attributes
            .map(|(name, value)| pair(&name, any(value)))
            .collect(),
        links: link.into_iter().collect(),
        status: record.error.map(|message| Status {
            message,
            code: StatusCode::Error.into(),
        }),
        ..Span::default()
    }
}

fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.unix_ms()).unwrap_or(0) * 1_000_000
}

fn text(name: &str, value: &str) -> KeyValue {
    pair(name, Some(Any::StringValue(value.to_owned())))
}

fn pair(name: &str, value: Option<Any>) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value }),
        ..KeyValue::default()
    }
}

fn any(value: Value) -> Option<Any> {
    match value {
        Value::Null => None,
        Value::Bool(flag) => Some(Any::BoolValue(flag)),
        Value::Number(number) => Some(match number.as_i64() {
            Some(whole) => Any::IntValue(whole),
            None => Any::DoubleValue(number.as_f64().unwrap_or_default()),
        }),
        Value::String(text) => Some(Any::StringValue(text)),
        Value::Array(values) => {
            let values = values.into_iter();
            let values = values.map(|value| AnyValue { value: any(value) }).collect();
            Some(Any::ArrayValue(ArrayValue { values }))
        }
        object @ Value::Object(_) => Some(Any::StringValue(object.to_string())),
    }
}
