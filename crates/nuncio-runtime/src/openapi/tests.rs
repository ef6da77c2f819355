//! Documents and the requests that come of them.

use nuncio_egress::{Egress, EgressPolicy};
use serde_json::{Map, Value, json};
use url::Url;

use super::call::Operation;
use super::document::operations;
use super::{OpenApi, OpenApiError, OpenApiSettings};

fn settings() -> OpenApiSettings {
    let base = Url::parse("https://shop.example/api/v2").unwrap();
    OpenApiSettings::new("shop", base, Egress::new(EgressPolicy::default()).unwrap())
}

fn document() -> Value {
    json!({
        "openapi": "3.0.3",
        "paths": {
            "/orders/{id}/items.{format}": {
                "parameters": [{"$ref": "#/components/parameters/Id"}],
                "get": {
                    "operationId": "list items",
                    "summary": "Lists items.",
                    "parameters": [
                        {"name": "format", "in": "path", "required": true, "schema": {"type": "string"}},
                        {"name": "tag", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                        {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                        {"name": "X-Key", "in": "header", "required": true, "schema": {"type": "string"}},
                        {"name": "session", "in": "cookie", "schema": {"type": "string"}}
                    ]
                }
            },
            "/orders": {
                "post": {
                    "operationId": "order",
                    "requestBody": {"required": true, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Order"}}}}
                }
            },
            "/photos": {
                "post": {
                    "operationId": "upload",
                    "requestBody": {"required": true, "content": {"image/png": {}}}
                }
            }
        },
        "components": {
            "parameters": {"Id": {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}},
            "schemas": {"Order": {"type": "object", "properties": {
                "sku": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Order"}}
            }, "required": ["sku"]}}
        }
    })
}

fn operation(id: &str, settings: OpenApiSettings) -> Operation {
    let found = operations(&document(), &settings).unwrap();
    let found = found
        .into_iter()
        .find(|operation| operation.id == id)
        .unwrap();
    Operation::new(settings.into(), found)
}

fn args(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn operations_become_tools() {
    let mut settings = settings();
    settings.headers.insert("x-key", "k".parse().unwrap());
    settings.prefix = Some("shop_".to_owned());
    settings.approve = vec!["order".to_owned()];
    let tools = OpenApi::new(&document(), settings).unwrap();
    let mut specs: Vec<_> = tools.tools().iter().map(|tool| tool.spec()).collect();
    specs.sort_by(|a, b| b.name.cmp(&a.name));
    let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(
        names,
        ["shop_order", "shop_list_items"],
        "the upload is no JSON"
    );
    assert!(specs[0].needs_approval && !specs[0].read_only);
    assert!(specs[1].read_only && specs[1].parallel && !specs[1].needs_approval);
    let schema = &specs[1].input_schema;
    assert_eq!(schema["required"], json!(["format", "id"]), "its own first");
    assert_eq!(
        schema["properties"].as_object().unwrap().len(),
        4,
        "the key and the cookie are none: {schema}"
    );
    assert!(!specs[0].input_schema.to_string().contains("$ref"));
    assert_eq!(specs[0].input_schema["required"], json!(["body"]));
}

#[test]
fn arguments_go_where_they_belong() {
    let mut settings = settings();
    settings.headers.insert("x-key", "k".parse().unwrap());
    let list = operation("list items", settings.clone());
    let request = list
        .request(&args(
            json!({"id": "a/b ?#", "format": "json", "tag": ["x y", "z"], "X-Trace": "t"}),
        ))
        .unwrap();
    assert_eq!(
        request.url.as_str(),
        "https://shop.example/api/v2/orders/a%2Fb%20%3F%23/items.json?tag=x+y&tag=z"
    );
    assert_eq!(
        (&request.headers["x-key"], &request.headers["x-trace"]),
        (&"k".parse().unwrap(), &"t".parse().unwrap())
    );
    let request = operation("order", settings)
        .request(&args(json!({"body": {"sku": "1"}})))
        .unwrap();
    assert_eq!(
        (request.url.as_str(), &request.body[..]),
        (
            "https://shop.example/api/v2/orders",
            &b"{\"sku\":\"1\"}"[..]
        )
    );
}

/// A model cannot leave the path of the operation.
#[test]
fn values_stay_within_their_piece_of_the_path() {
    let list = operation("list items", settings());
    for id in ["..", ".", ""] {
        assert!(
            list.request(&args(json!({"id": id, "format": "json"})))
                .is_err(),
            "{id}"
        );
    }
    let request = list
        .request(&args(json!({"id": "../../admin", "format": "json"})))
        .unwrap();
    assert_eq!(
        request.url.path(),
        "/api/v2/orders/..%2F..%2Fadmin/items.json"
    );
}

#[test]
fn bad_documents_are_refused_with_their_place() {
    let refused = |document: Value, settings: OpenApiSettings| -> OpenApiError {
        OpenApi::new(&document, settings).unwrap_err()
    };
    assert_eq!(
        refused(json!({"swagger": "2.0"}), settings()).path,
        "/openapi"
    );
    assert_eq!(
        refused(json!({"openapi": "3.1.0"}), settings()).path,
        "/paths"
    );
    assert_eq!(
        refused(json!({"openapi": "3.1.0", "paths": {}}), settings()).path,
        "/paths"
    );
    let mut broken = document();
    broken["components"] = json!({});
    assert_eq!(
        refused(broken, settings()).path,
        "#/components/parameters/Id"
    );
    let mut circle = document();
    circle["components"]["parameters"]["Id"] = json!({"$ref": "#/components/parameters/Id"});
    assert!(refused(circle, settings()).message.contains("itself"));
    for missing in ["nothing", "upload"] {
        let mut settings = settings();
        settings.allow = Some(vec![missing.to_owned()]);
        assert!(refused(document(), settings).message.contains(missing));
    }
}
