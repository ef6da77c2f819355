use std::sync::Arc;

use nuncio_engine::{AgentInfo, Input};
use nuncio_protocol::{Message, Part, Task};
use serde_json::json;

use super::{Rule, ScriptAgent, Step, check, turns};

fn rules(toml: &str) -> Vec<Rule> {
    #[derive(serde::Deserialize)]
    struct Script {
        rules: Vec<Rule>,
    }
    let script: Script = toml::from_str(toml).unwrap();
    script.rules
}

fn input(id: &str, parts: Vec<Part>, turn: usize) -> Input {
    let message = Message::user(id, parts);
    let mut task = Task::default();
    task.history = vec![message.clone(); turn];
    Input::new(message, Arc::new(task))
}

fn matching(rules: &[Rule], input: &Input) -> Option<usize> {
    let turns = turns(input);
    rules
        .iter()
        .position(|rule| rule.matches(&input.message, turns.len()))
}

#[test]
fn every_condition_of_a_rule_must_hold() {
    let rules = rules(
        r#"
        rules = [
            { when = { message_id_prefix = "tck-a-b" } },
            { when = { message_id_prefix = "tck-a" } },
            { when = { text = "hello", turn = 1 } },
            { when = { text_prefix = "go ", text_contains = "home" } },
            { when = { has_data = true, has_raw = false } },
            { when = { has_url = true } },
            { otherwise = true },
        ]"#,
    );
    assert_eq!(check(&rules), []);
    let text = |text: &str| vec![Part::text(text)];
    let data = || Part::data(json!(1));
    for (message, expected) in [
        (input("tck-a-b-1", text("x"), 1), 0),
        (input("tck-a-c", text("x"), 1), 1),
        (input("m", text("hello"), 1), 2),
        (input("m", text("hello"), 2), 6),
        (input("m", text("hello there"), 1), 6),
        (input("m", text("go home"), 1), 3),
        (input("m", text("go away"), 1), 6),
        (input("m", vec![data()], 1), 4),
        (input("m", vec![data(), Part::raw("x")], 1), 6),
        (input("m", vec![Part::url("https://a.example/x")], 1), 5),
    ] {
        assert_eq!(
            matching(&rules, &message),
            Some(expected),
            "{:?}",
            message.message
        );
    }
}

#[test]
fn an_answer_goes_on_where_the_question_stood() {
    let rules = rules(
        r#"
        [[rules]]
        when = { text = "ask" }
        steps = [
            { status = "one moment" },
            { pause = { prompt = "first?", on_answer = [
                { pause = { prompt = "second?", on_answer = [{ text = "done" }] } },
            ] } },
        ]
        [[rules]]
        when = { text = "open" }
        steps = [{ pause = { prompt = "what now?" } }]
        [[rules]]
        otherwise = true
        steps = [{ text = "plain" }]
        "#,
    );
    let agent = ScriptAgent::new(AgentInfo::new("s", "S", "s"), rules).unwrap();
    let plays = |texts: &[&str]| {
        let ids = 0..texts.len();
        let messages: Vec<Message> = ids
            .map(|n| Message::user(n.to_string(), vec![Part::text(texts[n])]))
            .collect();
        let steps = agent
            .steps(&messages.iter().collect::<Vec<_>>())
            .unwrap()
            .to_vec();
        match steps.last() {
            Some(Step::Pause(pause)) => pause.prompt.clone(),
            Some(Step::Text(text)) => text.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(plays(&["ask"]), "first?");
    assert_eq!(plays(&["ask", "a"]), "second?");
    assert_eq!(
        plays(&["ask", "ask", "ask"]),
        "done",
        "an answer is no new question"
    );
    assert_eq!(
        plays(&["ask", "a", "b", "ask"]),
        "first?",
        "after the end the rules count again"
    );
    assert_eq!(
        plays(&["open", "ask", "a"]),
        "second?",
        "an open question matches the rules"
    );
    assert_eq!(plays(&["open", "x"]), "plain");
}

#[test]
fn messages_that_wait_behind_the_one_at_hand_do_not_count() {
    let mut input = input("m2", vec![Part::text("b")], 0);
    let message = |id: &str| Message::user(id, vec![Part::text("x")]);
    let mut task = Task::default();
    task.history = vec![
        message("m1"),
        Message::agent("a1", vec![]),
        message("m2"),
        message("m3"),
    ];
    input.task = Arc::new(task);
    let ids: Vec<&str> = turns(&input)
        .iter()
        .map(|m| m.message_id.as_str())
        .collect();
    assert_eq!(ids, ["m1", "m2"]);
}

#[test]
fn faults_are_named_with_their_place() {
    let faults = check(&rules(
        r#"
        rules = [
            { otherwise = true, steps = ["silent", { status = "never" }] },
            { steps = [] },
            { when = {}, steps = [{ status = "x" }, { message = "late" }] },
            { when = { text = "a" }, otherwise = true },
            { when = { text = "b" }, steps = [
                { artifact = {} },
                { artifact = { text = "a", chunks = ["b"] } },
                { artifact = { text = "a", raw = "eA==" } },
                { artifact = { raw = "!" } },
                { artifact = { json = "{" } },
                { artifact = { text = "a", append = true } },
                { artifact = { parts = [{ text = "a" }, {}] } },
                { repeat = { times = 0, steps = ["panic"] } },
                { pause = { prompt = "?", scheme = "Bearer", on_answer = [{ message = "no" }] } },
            ] },
        ]"#,
    ));
    let paths: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "[0].otherwise",
            "[0].steps[1]",
            "[1]",
            "[2].when",
            "[2].steps[1]",
            "[3]",
            "[4].steps[0].artifact",
            "[4].steps[1].artifact",
            "[4].steps[2].artifact",
            "[4].steps[3].artifact.raw",
            "[4].steps[4].artifact.json",
            "[4].steps[5].artifact",
            "[4].steps[6].artifact.parts[1]",
            "[4].steps[7].repeat.times",
            "[4].steps[7].repeat.steps[0]",
            "[4].steps[8].pause",
            "[4].steps[8].pause.on_answer[0]",
        ]
    );
    assert!(faults.iter().all(|fault| !fault.hint.is_empty()));
    assert_eq!(check(&[])[0].message, "a script needs at least one rule");
}
