//! Agents made of others.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nuncio_engine::{Agent, AgentInfo, Input, Outcome, Pause, RunCx, agent_fn};
use nuncio_protocol::{AgentId, Artifact, Part, StreamResponse, TaskState};
use nuncio_runtime::{
    Choice, Edge, Emit, FlowAgent, Graph, Join, Parallel, Plan, Rounds, Route, ScriptAgent,
    Sequence, When,
};
use nuncio_store::MemoryStore;
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{Hosted, rules, said, texts};

fn ids(names: &[&str]) -> Vec<AgentId> {
    names.iter().map(|&name| name.into()).collect()
}

fn info(id: &str) -> AgentInfo {
    AgentInfo::new(id, id, "a member")
}

/// An agent of one rule for every message.
fn script(id: &str, steps: &str) -> Arc<dyn Agent> {
    let rules = rules(&format!("[[rules]]\notherwise = true\nsteps = [{steps}]\n"));
    Arc::new(ScriptAgent::new(info(id), rules).unwrap())
}

/// Appends its name to the text it gets.
fn adds(id: &str) -> Arc<dyn Agent> {
    script(
        id,
        &format!("{{ artifact = {{ id = 'a', text = '{{text}}+{id}' }} }}"),
    )
}

/// Asks once, with its name, and gives the answer.
fn asks(id: &str) -> Arc<dyn Agent> {
    let answered = format!("{{ artifact = {{ id = 'a', text = '{id}={{text}}' }} }}");
    script(
        id,
        &format!("{{ pause = {{ prompt = '{id}?', on_answer = [{answered}] }} }}"),
    )
}

/// Works until it is canceled, and says when it begins and when it is.
fn holds(id: &str, begun: &Arc<AtomicUsize>, canceled: &Arc<AtomicUsize>) -> Arc<dyn Agent> {
    let (begun, canceled) = (Arc::clone(begun), Arc::clone(canceled));
    Arc::new(agent_fn(info(id), move |cx: RunCx, _| {
        let (begun, canceled) = (Arc::clone(&begun), Arc::clone(&canceled));
        async move {
            begun.fetch_add(1, Ordering::SeqCst);
            cx.status("holding").await?;
            cx.cancellation().cancelled().await;
            canceled.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
    }))
}

fn flow(plan: Plan, members: impl IntoIterator<Item = Arc<dyn Agent>>) -> Hosted {
    flow_on(Arc::default(), plan, members)
}

fn flow_on(
    store: Arc<MemoryStore>,
    plan: Plan,
    members: impl IntoIterator<Item = Arc<dyn Agent>>,
) -> Hosted {
    Hosted::made(store, |engine| {
        for member in members {
            engine.host(member);
        }
        let info = AgentInfo::new("flow", "Flow", "a flow");
        Arc::new(FlowAgent::new(info, plan, Arc::new(engine.directory())))
    })
}

fn sequence(members: &[&str]) -> Plan {
    Plan::Sequence(Sequence {
        members: ids(members),
        emit: Emit::Last,
    })
}

fn parallel(members: &[&str], join: Join) -> Plan {
    Plan::Parallel(Parallel {
        members: ids(members),
        join,
        concurrency: 8,
    })
}

fn when(toml: &str) -> When {
    toml::from_str(toml).unwrap()
}

#[tokio::test]
async fn a_sequence_passes_on_what_each_gives() {
    let members = || [adds("a"), adds("b"), adds("c")];
    let hosted = flow(sequence(&["a", "b", "c"]), members());
    assert_eq!(texts(&hosted.task("x").await), ["x+a+b+c"]);
    let all = Plan::Sequence(Sequence {
        members: ids(&["a", "b", "c"]),
        emit: Emit::All,
    });
    let task = flow(all, members()).task("x").await;
    assert_eq!(texts(&task), ["x+a", "x+a+b", "x+a+b+c"]);
}

/// What is only said goes on too, and the last word is the flow's.
#[tokio::test]
async fn a_sequence_passes_on_words_where_there_are_no_artifacts() {
    let members = [
        script("a", "{ done = 'only {text}' }"),
        script("b", "{ done = '<{text}>' }"),
    ];
    let task = flow(sequence(&["a", "b"]), members).task("x").await;
    assert_eq!(
        (task.status.state, said(&task).as_str()),
        (TaskState::Completed, "<only x>")
    );
}

#[tokio::test]
async fn the_last_of_a_sequence_streams_into_the_task() {
    let members = [adds("a"), script("b", "{ text = '1' }, { text = '2' }")];
    let events = flow(sequence(&["a", "b"]), members).events("x").await;
    let pieces: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            StreamResponse::ArtifactUpdate(u) => Some((u.artifact.text(), u.append)),
            _ => None,
        })
        .collect();
    assert_eq!(pieces, [("1".to_owned(), false), ("2".to_owned(), true)]);
}

/// adk-rust #419: the answer goes to whoever asked, also after a restart, and to nobody else.
#[tokio::test]
async fn an_answer_reaches_the_member_that_asked_after_a_restart() {
    let store = Arc::new(MemoryStore::default());
    let begun = Arc::new(AtomicUsize::new(0));
    let members = || {
        let begun = Arc::clone(&begun);
        let first = agent_fn(info("first"), move |_, input: Input| {
            begun.fetch_add(1, Ordering::SeqCst);
            async move { Ok(format!("first:{}", input.message.text())) }
        });
        [
            Arc::new(first) as Arc<dyn Agent>,
            asks("second"),
            adds("third"),
        ]
    };
    let plan = || sequence(&["first", "second", "third"]);
    let hosted = flow_on(Arc::clone(&store), plan(), members());
    let waiting = hosted.task("x").await;
    assert_eq!(
        (waiting.status.state, said(&waiting).as_str()),
        (TaskState::InputRequired, "second?")
    );
    hosted.engine.stop_runs(Duration::ZERO).await.unwrap();
    drop(hosted);
    let hosted = flow_on(store, plan(), members());
    let done = hosted.answer(&waiting.id, "yes").await;
    assert_eq!(texts(&done), ["second=yes+third"], "{}", said(&done));
    assert_eq!(
        begun.load(Ordering::SeqCst),
        1,
        "the first is not asked again"
    );
}

/// Each of two that ask at once gets its own answer, one question after the other.
#[tokio::test]
async fn two_that_ask_get_an_answer_each() {
    let members = [asks("a"), adds("b"), asks("c")];
    let hosted = flow(parallel(&["a", "b", "c"], Join::All), members);
    let waiting = hosted.task("x").await;
    assert_eq!(said(&waiting), "a?");
    let waiting = hosted.answer(&waiting.id, "1").await;
    assert_eq!(
        (waiting.status.state, said(&waiting).as_str()),
        (TaskState::InputRequired, "c?")
    );
    let done = hosted.answer(&waiting.id, "2").await;
    assert_eq!(
        texts(&done),
        ["a=1", "x+b", "c=2"],
        "in the order of the members"
    );
}

/// The question of a flow within a flow.
#[tokio::test]
async fn questions_pass_through_flows_within_flows() {
    let hosted = Hosted::made(Arc::default(), |engine| {
        engine.host(adds("a"));
        engine.host(asks("b"));
        engine.host(asks("c"));
        let inner = FlowAgent::new(
            info("inner"),
            sequence(&["b", "c"]),
            Arc::new(engine.directory()),
        );
        engine.host(Arc::new(inner));
        let outer = parallel(&["a", "inner"], Join::All);
        Arc::new(FlowAgent::new(
            info("outer"),
            outer,
            Arc::new(engine.directory()),
        ))
    });
    let task = hosted.task("x").await;
    assert_eq!(said(&task), "b?");
    let task = hosted.answer(&task.id, "1").await;
    assert_eq!(said(&task), "c?");
    let task = hosted.answer(&task.id, "2").await;
    assert_eq!(texts(&task), ["x+a", "c=2"], "{}", said(&task));
}

#[tokio::test]
async fn a_pause_keeps_what_it_is() {
    let auth = "{ pause = { prompt = 'log in', reason = 'auth', scheme = 'Bearer', on_answer = [{ done = 'in' }] } }";
    let hosted = flow(sequence(&["a"]), [script("a", auth)]);
    let waiting = hosted.task("x").await;
    assert_eq!(waiting.status.state, TaskState::AuthRequired);
    assert_eq!(said(&hosted.answer(&waiting.id, "token").await), "in");
}

#[tokio::test]
async fn parallel_members_work_at_once_but_not_too_many() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let member = |id: &str| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        let agent = agent_fn(info(id), move |_, _| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                Ok("ok")
            }
        });
        Arc::new(agent) as Arc<dyn Agent>
    };
    let plan = Plan::Parallel(Parallel {
        members: ids(&["a", "b", "c", "d", "e"]),
        join: Join::All,
        concurrency: 2,
    });
    let task = flow(plan, ["a", "b", "c", "d", "e"].map(member))
        .task("x")
        .await;
    assert_eq!(texts(&task).len(), 5, "{}", said(&task));
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn enough_are_enough_and_the_rest_is_canceled() {
    let (begun, canceled) = (Arc::default(), Arc::default());
    let members = [
        holds("slow", &begun, &canceled),
        script("bad", "{ fail = 'no' }"),
        adds("quick"),
    ];
    let hosted = flow(parallel(&["slow", "bad", "quick"], Join::Count(1)), members);
    let task = hosted.task("x").await;
    assert_eq!(texts(&task), ["x+quick"], "{}", said(&task));
    assert_eq!(
        (
            begun.load(Ordering::SeqCst),
            canceled.load(Ordering::SeqCst)
        ),
        (1, 1)
    );
}

#[tokio::test]
async fn a_failed_member_fails_the_flow_with_its_name_and_cause() {
    let (begun, canceled) = (Arc::default(), Arc::default());
    let members = || {
        [
            holds("slow", &begun, &canceled),
            script("bad", "{ fail = 'no paper' }"),
        ]
    };
    let plans = [
        parallel(&["slow", "bad"], Join::All),
        sequence(&["bad", "slow"]),
    ];
    for plan in plans {
        let task = flow(plan, members()).task("x").await;
        assert_eq!(
            (task.status.state, said(&task).as_str()),
            (TaskState::Failed, "agent bad failed: no paper")
        );
    }
    assert_eq!(
        canceled.load(Ordering::SeqCst),
        1,
        "the other one is canceled"
    );
    let rejects = [script("a", "{ reject = 'not mine' }")];
    let task = flow(sequence(&["a"]), rejects).task("x").await;
    assert_eq!(
        (task.status.state, said(&task).as_str()),
        (TaskState::Rejected, "agent a: not mine")
    );
}

#[tokio::test]
async fn a_cancel_reaches_all_members() {
    let (begun, canceled) = (Arc::default(), Arc::default());
    let members = [holds("a", &begun, &canceled), holds("b", &begun, &canceled)];
    let hosted = flow(parallel(&["a", "b"], Join::All), members);
    let task = hosted.begin_and_hear("x", "holding").await;
    let task = hosted.cancel(&task.id).await;
    assert_eq!(task.status.state, TaskState::Canceled);
    assert_eq!(
        begun.load(Ordering::SeqCst),
        canceled.load(Ordering::SeqCst)
    );
    assert!(canceled.load(Ordering::SeqCst) >= 1);
}

/// Counts its rounds, and says done in the third.
fn counts(done_at: usize) -> Arc<dyn Agent> {
    Arc::new(agent_fn(
        info("counter"),
        move |_, input: Input| async move {
            let round = input.message.text().len() + 1;
            let mut parts = vec![Part::text("i".repeat(round))];
            if round == done_at {
                parts.push(Part::data(json!({"done": true})));
            }
            Ok(parts)
        },
    ))
}

fn rounds(until: Option<When>, limit: usize, complete_at_limit: bool) -> Plan {
    Plan::Repeat(Rounds {
        members: ids(&["counter"]),
        until,
        limit,
        complete_at_limit,
    })
}

#[tokio::test]
async fn a_repetition_ends_by_data_by_rule_or_at_its_limit() {
    let run = async |plan: Plan, done_at: usize| {
        let task = flow(plan, [counts(done_at)]).task("").await;
        (task.status.state, texts(&task), said(&task))
    };
    let (state, given, _) = run(rounds(None, 10, false), 3).await;
    assert_eq!(
        (state, given),
        (TaskState::Completed, vec!["iii".to_owned()])
    );
    let until = when("text = 'iiii'");
    let (_, given, _) = run(rounds(Some(until), 10, false), 9).await;
    assert_eq!(given, ["iiii"]);
    let (state, given, why) = run(rounds(None, 2, false), 9).await;
    assert_eq!((state, given.len()), (TaskState::Failed, 0));
    assert_eq!(why, "the flow did not come to its end in 2 rounds");
    let (state, given, _) = run(rounds(None, 2, true), 9).await;
    assert_eq!(
        (state, given),
        (TaskState::Completed, vec!["ii".to_owned()])
    );
}

#[tokio::test]
async fn a_route_is_chosen_by_rule() {
    let plan = || {
        Plan::Route(Route::Rules(vec![
            Choice {
                when: Some(when("text_prefix = 'bill'")),
                agent: "billing".into(),
            },
            Choice {
                when: Some(when("text_prefix = 'ship'")),
                agent: "shipping".into(),
            },
        ]))
    };
    let hosted = flow(plan(), [asks("billing"), adds("shipping")]);
    assert_eq!(texts(&hosted.task("ship it").await), ["ship it+shipping"]);
    // The answer does not look like the message, and still goes where the question came from.
    let waiting = hosted.task("bill me").await;
    let done = hosted.answer(&waiting.id, "ship").await;
    assert_eq!(texts(&done), ["billing=ship"]);
    let none = hosted.task("hello").await;
    assert_eq!(
        (none.status.state, said(&none).as_str()),
        (TaskState::Rejected, "no route fits this message")
    );
}

#[tokio::test]
async fn a_route_is_chosen_by_an_agent() {
    let plan = || {
        Plan::Route(Route::Router {
            router: "router".into(),
            members: ids(&["a", "b"]),
        })
    };
    let chosen = |name: &str| script("router", &format!("{{ artifact = {{ text = '{name}' }} }}"));
    let task = flow(plan(), [chosen(" b. "), adds("a"), adds("b")])
        .task("x")
        .await;
    assert_eq!(texts(&task), ["x+b"], "{}", said(&task));
    let task = flow(plan(), [chosen("z"), adds("a"), adds("b")])
        .task("x")
        .await;
    assert_eq!(
        said(&task),
        "agent router chose \"z\", which is none of a, b"
    );
}

fn graph(edges: &[(&str, &str, &str)]) -> Plan {
    let edge = |(from, to, rule): &(&str, &str, &str)| Edge {
        from: (*from).to_owned(),
        to: (*to).to_owned(),
        when: (!rule.is_empty()).then(|| when(rule)),
    };
    Plan::Graph(Graph {
        nodes: BTreeMap::from([
            ("draft".to_owned(), "writer".into()),
            ("review".to_owned(), "critic".into()),
            ("print".to_owned(), "printer".into()),
        ]),
        edges: edges.iter().map(edge).collect(),
        start: "draft".to_owned(),
        limit: 3,
    })
}

#[tokio::test]
async fn a_graph_goes_along_the_edges_that_fit() {
    let members = || [adds("writer"), adds("critic"), adds("printer")];
    let round_trip = [
        ("draft", "review", ""),
        ("review", "print", "turn = 2"),
        ("review", "draft", ""),
    ];
    let task = flow(graph(&round_trip), members()).task("x").await;
    assert_eq!(
        texts(&task),
        ["x+writer+critic+writer+critic+printer"],
        "{}",
        said(&task)
    );
    let to_end = [("draft", "end", "")];
    let task = flow(graph(&to_end), members()).task("x").await;
    assert_eq!(texts(&task), ["x+writer"]);
    let endless = [("draft", "review", ""), ("review", "draft", "")];
    let task = flow(graph(&endless), members()).task("x").await;
    assert_eq!(said(&task), "the flow visited node draft more than 3 times");
    let nowhere = [("draft", "review", "text = 'never'")];
    let task = flow(graph(&nowhere), members()).task("x").await;
    assert_eq!(said(&task), "no edge of node draft fits what it gave");
}

/// A crash amid a step: those before it are not played again.
#[tokio::test]
async fn a_flow_goes_on_where_a_crash_cut_it_off() {
    let store = Arc::new(MemoryStore::default());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let stuck = Arc::new(Notify::new());
    let build = |hang: bool| {
        let (asked, stuck) = (Arc::clone(&asked), Arc::clone(&stuck));
        let member = move |id: &'static str, hang: bool| {
            let (asked, stuck) = (Arc::clone(&asked), Arc::clone(&stuck));
            let agent = agent_fn(info(id), move |cx: RunCx, input: Input| {
                asked.lock().push(format!("{id}:{}", cx.attempt()));
                let stuck = Arc::clone(&stuck);
                async move {
                    if hang {
                        stuck.notify_one();
                        std::future::pending::<()>().await;
                    }
                    Ok(format!("{}+{id}", input.message.text()))
                }
            });
            Arc::new(agent) as Arc<dyn Agent>
        };
        Hosted::made(Arc::clone(&store), move |engine| {
            engine.host(member("a", false));
            engine.host(member("b", hang));
            let mut info = info("flow");
            info.resumable = true;
            let plan = sequence(&["a", "b"]);
            Arc::new(FlowAgent::new(info, plan, Arc::new(engine.directory())))
        })
    };
    let hosted = build(true);
    let task = hosted.begin("x").await;
    stuck.notified().await;
    hosted.engine.stop_runs(Duration::ZERO).await.unwrap();
    drop(hosted);
    let hosted = build(false);
    hosted.engine.recover().await.unwrap();
    let done = hosted.rests(&task.id).await;
    assert_eq!(texts(&done), ["x+a+b"], "{}", said(&done));
    assert_eq!(*asked.lock(), ["a:1", "b:1", "b:2"]);
}

/// A message that comes while a flow works gets a round of its own.
#[tokio::test]
async fn a_message_that_waits_is_answered_anew() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let slow = {
        let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
        agent_fn(info("slow"), move |_, input: Input| {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            async move {
                begun.notify_one();
                go_on.notified().await;
                Ok(format!("{}+slow", input.message.text()))
            }
        })
    };
    let members = [Arc::new(slow) as Arc<dyn Agent>, adds("b")];
    let hosted = flow(sequence(&["slow", "b"]), members);
    let task = hosted.begin("one").await;
    begun.notified().await;
    hosted.queue(&task.id, "two").await;
    go_on.notify_one();
    begun.notified().await;
    go_on.notify_one();
    let rested = hosted.rests(&task.id).await;
    assert_eq!(rested.status.state, TaskState::Completed, "{rested:?}");
    assert_eq!(texts(&rested), ["two+slow+b"]);
}

/// What a member gave before it asked, or handed its step over, is passed on with what came after, also
/// after a restart; an artifact that was begun goes on.
#[tokio::test]
async fn what_was_given_before_a_question_is_passed_on_too() {
    let piece = |id: &str, text: &str| Artifact::new(id, vec![Part::text(text)]);
    let members = || {
        let asks = agent_fn(info("a"), move |cx: RunCx, input: Input| async move {
            if input.checkpoint.is_none() {
                cx.checkpoint(&json!("asked"))?;
                cx.artifact(piece("whole", "before, ")).await?;
                cx.chunk(piece("begun", "one, "), false, false).await?;
                let question = cx.message(vec![Part::text("which?")]);
                return Ok(Outcome::Paused(Pause::input(question)));
            }
            cx.chunk(piece("begun", "two, "), true, true).await?;
            let message = cx.message(input.message.parts);
            Ok(Outcome::HandOff {
                agent: "b".into(),
                message,
            })
        });
        [Arc::new(asks) as Arc<dyn Agent>, adds("b"), adds("c")]
    };
    let store = Arc::new(MemoryStore::default());
    let before = flow_on(Arc::clone(&store), sequence(&["a", "c"]), members());
    let waiting = before.task("x").await;
    assert_eq!(said(&waiting), "which?");
    before.engine.stop_runs(Duration::ZERO).await.unwrap();
    drop(before);
    let after = flow_on(store, sequence(&["a", "c"]), members());
    let done = after.answer(&waiting.id, "red").await;
    assert_eq!(
        texts(&done),
        ["before, one, two, red+b+c"],
        "{}",
        said(&done)
    );
}

#[tokio::test]
async fn a_member_may_hand_its_step_over() {
    let hands_over = agent_fn(info("a"), async |cx: RunCx, input: Input| {
        let message = cx.message(vec![Part::text(format!("for b: {}", input.message.text()))]);
        Ok(Outcome::HandOff {
            agent: "b".into(),
            message,
        })
    });
    let members = [Arc::new(hands_over) as Arc<dyn Agent>, asks("b"), adds("c")];
    let hosted = flow(sequence(&["a", "c"]), members);
    let waiting = hosted.task("x").await;
    assert_eq!(said(&waiting), "b?");
    let done = hosted.answer(&waiting.id, "1").await;
    assert_eq!(texts(&done), ["b=1+c"], "{}", said(&done));
}

#[tokio::test]
async fn what_is_not_there_or_goes_in_circles_is_told() {
    let task = flow(sequence(&["ghost"]), []).task("x").await;
    assert_eq!(
        said(&task),
        "agent ghost, which the flow needs, is not there"
    );
    let task = flow(sequence(&["flow"]), []).task("x").await;
    assert_eq!(
        said(&task),
        "agent flow is at work already in this chain of calls"
    );
}

/// A member sees its own step as the history of the task.
#[tokio::test]
async fn a_member_sees_what_was_said_to_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let member = {
        let seen = Arc::clone(&seen);
        agent_fn(info("b"), move |cx: RunCx, input: Input| {
            let history = input
                .task
                .history
                .iter()
                .map(nuncio_protocol::Message::text);
            seen.lock().push(history.collect::<Vec<_>>());
            async move {
                if input.turn() == 1 {
                    let prompt = cx.message(vec![Part::text("why?")]);
                    return Ok(Outcome::Paused(Pause::input(prompt)));
                }
                Ok(Outcome::Done)
            }
        })
    };
    let members = [adds("a"), Arc::new(member) as Arc<dyn Agent>];
    let hosted = flow(sequence(&["a", "b"]), members);
    let waiting = hosted.task("x").await;
    let done = hosted.answer(&waiting.id, "because").await;
    assert_eq!(done.status.state, TaskState::Completed);
    assert_eq!(*seen.lock(), [vec!["x+a"], vec!["x+a", "why?", "because"]]);
}
