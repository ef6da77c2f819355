//! What is taken from peers beyond our own spelling, at every place where it can occur.
//!
//! Each test changes the golden messages at one place after the other and compares with what the
//! unchanged one means.

use serde_json::{Value, json};

use crate::support::{Form, Golden, members, messages, object_mut, objects, snake_case};

fn meaning(golden: &Golden, message: &Value) -> Result<String, String> {
    golden
        .reread(&message.to_string())
        .map_err(|error| error.to_string())
}

/// Calls `change` with every member of every golden message; how many it took.
fn at_every_member(mut change: impl FnMut(&Golden, &Value, &str, &str) -> bool) -> usize {
    let mut changed = 0;
    for golden in messages("json_rpc") {
        let message = golden.message();
        for (object, name) in members(&message) {
            changed += usize::from(change(&golden, &message, &object, &name));
        }
    }
    changed
}

/// JSON-01, BR-137.
#[test]
fn the_protos_spelling_is_taken_for_every_field() {
    let renamed = at_every_member(|golden, message, object, name| {
        let proto = snake_case(name);
        if proto == name {
            return false;
        }
        let mut changed = message.clone();
        let fields = object_mut(&mut changed, object);
        let value = fields.remove(name).unwrap();
        fields.insert(proto, value);
        assert_eq!(
            meaning(golden, &changed),
            meaning(golden, message),
            "{}{object}/{name}",
            golden.name
        );
        true
    });
    assert!(renamed > 150, "{renamed}");
}

/// JSON-01: all fields at once, as the conformance kit's client sends them.
#[test]
fn a_message_wholly_in_the_protos_spelling_is_taken() {
    for golden in messages("json_rpc") {
        let message = golden.message();
        let mut changed = message.clone();
        // Inner places first, so that the pointers of outer ones stay right.
        let mut places = members(&message);
        places.sort_by_key(|(object, _)| std::cmp::Reverse(object.matches('/').count()));
        for (object, name) in places {
            let fields = object_mut(&mut changed, &object);
            let value = fields.remove(&name).unwrap();
            fields.insert(snake_case(&name), value);
        }
        assert_eq!(
            meaning(&golden, &changed),
            meaning(&golden, &message),
            "{}",
            golden.name
        );
    }
}

/// JSON-01: whichever comes first, and also where one of them is `null`.
#[test]
fn both_spellings_of_one_field_are_refused() {
    at_every_member(|golden, message, object, name| {
        let proto = snake_case(name);
        if proto == name || in_a_scheme(object) {
            return false;
        }
        for (ours, theirs) in [(false, false), (true, false), (false, true)] {
            let mut changed = message.clone();
            let fields = object_mut(&mut changed, object);
            let value = fields[name].clone();
            let or_null = |null: bool| if null { Value::Null } else { value.clone() };
            fields.insert(name.to_owned(), or_null(ours));
            fields.insert(proto.clone(), or_null(theirs));
            // A choice sees the members that are set, so one of two may be null there.
            if is_choice(name) && (ours || theirs) {
                continue;
            }
            assert!(
                meaning(golden, &changed).is_err(),
                "{}{object}/{name} {ours} {theirs}",
                golden.name
            );
        }
        true
    });
}

/// A scheme that cannot be read is left out instead (CARD-09).
fn in_a_scheme(object: &str) -> bool {
    object.contains("/securitySchemes/")
}

fn is_choice(name: &str) -> bool {
    matches!(
        name,
        "task" | "message" | "statusUpdate" | "artifactUpdate" | "text" | "raw" | "url"
    )
}

/// RPC-14: one key twice, at every member of every message.
#[test]
fn one_key_twice_is_refused_everywhere() {
    at_every_member(|golden, message, object, name| {
        let mut changed = message.clone();
        let fields = object_mut(&mut changed, object);
        let value = fields[name].clone();
        fields.insert("\u{1}twin".to_owned(), value);
        let twin = format!("{:?}:", name);
        let text = changed.to_string().replace("\"\\u0001twin\":", &twin);
        let error = golden.reread(&text).unwrap_err();
        assert!(error.message.contains("twice"), "{}: {error}", golden.name);
        true
    });
}

/// JSON-06, BR-159: `null` is absent for every field but a part's data.
#[test]
fn null_means_absent_for_every_field() {
    let nulled = at_every_member(|golden, message, object, name| {
        let mut null = message.clone();
        object_mut(&mut null, object).insert(name.to_owned(), Value::Null);
        let mut absent = message.clone();
        object_mut(&mut absent, object).remove(name);
        let place = format!("{}{object}/{name}", golden.name);
        let is_data = name == "data" && object.rsplit('/').nth(1) == Some("parts");
        if is_data {
            assert!(meaning(golden, &null).is_ok(), "{place}");
            assert!(meaning(golden, &absent).is_err(), "{place}");
        } else {
            assert_eq!(meaning(golden, &null), meaning(golden, &absent), "{place}");
        }
        true
    });
    assert!(nulled > 400, "{nulled}");
}

/// BR-159: with any one field gone, only a choice that is left empty is refused.
#[test]
fn any_field_may_be_absent_without_harm() {
    at_every_member(|golden, message, object, name| {
        let mut absent = message.clone();
        object_mut(&mut absent, object).remove(name);
        let place = format!("{}{object}/{name}", golden.name);
        let is_part = object.rsplit('/').nth(1) == Some("parts");
        let needed = match name {
            "text" | "raw" | "data" => is_part,
            "url" => is_part,
            "task" | "message" | "statusUpdate" | "artifactUpdate" => {
                object.is_empty() && golden.form != Form::Request
            }
            _ => false,
        };
        assert_eq!(meaning(golden, &absent).is_err(), needed, "{place}");
        true
    });
}

/// JSON-10, BR-136: an unknown member at every depth, of every type, is not seen.
#[test]
fn unknown_members_are_ignored_at_every_depth() {
    let unknown = [
        json!({"kind": "task", "final": true, "messageId": {"parts": [1]}}),
        json!([[], {"a": null}]),
        json!("text"),
        json!(1e300),
        Value::Null,
    ];
    for golden in messages("json_rpc") {
        let message = golden.message();
        let expected = meaning(&golden, &message);
        let mut everywhere = message.clone();
        for object in objects(&message) {
            for value in &unknown {
                let mut changed = message.clone();
                object_mut(&mut changed, &object).insert("zz_Unknown".to_owned(), value.clone());
                object_mut(&mut changed, &object).insert("kind".to_owned(), value.clone());
                assert_eq!(
                    meaning(&golden, &changed),
                    expected,
                    "{}{object}",
                    golden.name
                );
            }
            object_mut(&mut everywhere, &object).insert("AUnknown".to_owned(), unknown[0].clone());
        }
        assert_eq!(meaning(&golden, &everywhere), expected, "{}", golden.name);
    }
}

/// JSON-02, BR-137: enums by number, at every place.
#[test]
fn enums_are_taken_by_number() {
    use nuncio_protocol::{Role, TaskState};
    let numbered = at_every_member(|golden, message, object, name| {
        let value = &message.pointer(object).unwrap()[name];
        let text = value.as_str().unwrap_or_default();
        let number = match name {
            "role" => Role::from_name(text).unwrap().number(),
            "state" | "status" if value.is_string() => TaskState::from_name(text).unwrap().number(),
            _ => return false,
        };
        let mut changed = message.clone();
        object_mut(&mut changed, object).insert(name.to_owned(), number.into());
        assert_eq!(meaning(golden, &changed), meaning(golden, message));
        true
    });
    assert!(numbered > 20, "{numbered}");
}

/// A wrong type anywhere is refused, except where a reader skips (CARD-09), and never a panic.
#[test]
fn wrong_types_are_refused_with_the_path_of_the_field() {
    at_every_member(|golden, message, object, name| {
        if golden.form != Form::Request {
            return false;
        }
        let before = &message.pointer(object).unwrap()[name];
        let wrong = match before {
            Value::Object(_) | Value::Array(_) => json!("text"),
            _ => json!({"an": "object"}),
        };
        if name == "data" {
            return false;
        }
        let mut changed = message.clone();
        object_mut(&mut changed, object).insert(name.to_owned(), wrong);
        let error = golden.reread(&changed.to_string()).unwrap_err();
        let violations = error.violations();
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].field, dotted(object, name));
        true
    });
}

/// `/message/parts/0` and `text` become `message.parts[0].text`.
fn dotted(object: &str, name: &str) -> String {
    let mut out = String::new();
    for segment in object.split('/').skip(1).chain([name]) {
        if segment.bytes().all(|b| b.is_ascii_digit()) {
            out.push_str(&format!("[{segment}]"));
        } else {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(segment);
        }
    }
    out
}
