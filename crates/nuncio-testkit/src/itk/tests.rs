use std::collections::HashMap;
use std::sync::Arc;

use nuncio_engine::{AgentError, Engine, Environment, Settings};
use nuncio_protocol::{
    AgentService, Binding, Message, Part, Role, SendMessageResponse, Task, TaskState,
};
use nuncio_store::{MemoryOptions, MemoryStore};
use parking_lot::Mutex;
use prost::Message as _;

use super::{
    Behavior, CallAgent, Instruction, ItkAgent, PeerFuture, Peers, Resubscribe, ReturnResponse,
    SendMessage, SeriesOfSteps, Step,
};
use crate::{FixedClock, NumberedIds, call, send};

/// Agents by their addresses.
#[derive(Debug, Default)]
struct Neighbours(Mutex<HashMap<String, Arc<dyn AgentService>>>);

impl Peers for Neighbours {
    fn find<'a>(&'a self, card_url: &'a str, _: Binding) -> PeerFuture<'a> {
        let found = self.0.lock().get(card_url).cloned();
        Box::pin(async move { found.ok_or_else(|| AgentError::new("nobody there")) })
    }
}

/// Two agents that know each other; the first one.
fn neighbours() -> Arc<dyn AgentService> {
    let peers = Arc::new(Neighbours::default());
    let ids = Arc::new(NumberedIds::default());
    for address in ["a", "b"] {
        let environment = Environment {
            clock: Arc::new(FixedClock::default()),
            ids: Arc::clone(&ids) as _,
            token_key: [7; 32],
        };
        let store = Arc::new(MemoryStore::new(MemoryOptions::default()));
        let engine = Engine::new(store, environment, Settings::default());
        let agent = engine.host(Arc::new(ItkAgent::new(Arc::clone(&peers) as _)));
        peers.0.lock().insert(address.to_owned(), agent);
    }
    Arc::clone(&peers.0.lock()["a"])
}

fn say(response: &str, hold_task: bool) -> Instruction {
    Instruction::new(Step::ReturnResponse(ReturnResponse {
        response: response.to_owned(),
        hold_task,
    }))
}

/// a says its word and asks b, b says its word and asks a, and that is the end.
fn round_trip(behavior: &Behavior, streaming: bool) -> Instruction {
    let hold = matches!(behavior, Behavior::Resubscribe(_));
    let hop = |word: &str, to: &str, instruction: Instruction| {
        let call = CallAgent {
            transport: "jsonrpc".to_owned(),
            agent_card_uri: to.to_owned(),
            instruction: Some(Box::new(instruction)),
            streaming,
            behavior: Some(behavior.clone()),
        };
        Instruction::new(Step::Steps(SeriesOfSteps {
            instructions: vec![say(word, hold), Instruction::new(Step::CallAgent(call))],
            response_generator: 1,
        }))
    };
    hop("first", "b", hop("second", "a", say("end", hold)))
}

async fn ask(instruction: &Instruction) -> Task {
    let message = Message::user("m1", vec![instruction.to_part()]);
    let sent = neighbours().send_message(call("kit"), send(message)).await;
    match sent.unwrap() {
        SendMessageResponse::Task(task) => task,
        other => panic!("{other:?}"),
    }
}

fn last_word(task: &Task) -> String {
    let message = task.status.message.as_ref().unwrap();
    assert_eq!(message.role, Role::Agent);
    message.text()
}

#[tokio::test(start_paused = true)]
async fn a_round_trip_leaves_every_word() {
    let plain = Behavior::SendMessage(SendMessage {});
    for streaming in [false, true] {
        let task = ask(&round_trip(&plain, streaming)).await;
        assert_eq!(task.status.state, TaskState::Completed);
        assert_eq!(last_word(&task), "first\nsecond\nend");
    }
}

#[tokio::test(start_paused = true)]
async fn held_tasks_are_subscribed_to_and_canceled() {
    let task = ask(&round_trip(&Behavior::Resubscribe(Resubscribe {}), true)).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(last_word(&task), "first\nsecond\nend\ntask-finished");
}

#[tokio::test]
async fn what_cannot_be_followed_fails_and_says_why() {
    let nowhere = CallAgent {
        transport: "grpc".to_owned(),
        agent_card_uri: "c".to_owned(),
        instruction: Some(Box::new(say("end", false))),
        ..CallAgent::default()
    };
    let unspoken = CallAgent {
        transport: "pigeon".to_owned(),
        ..nowhere.clone()
    };
    for (instruction, why) in [
        (Instruction::default(), "an instruction is empty"),
        (Instruction::new(Step::CallAgent(nowhere)), "nobody there"),
        (
            Instruction::new(Step::CallAgent(unspoken)),
            "pigeon is no transport",
        ),
    ] {
        let task = ask(&instruction).await;
        assert_eq!(task.status.state, TaskState::Failed);
        assert_eq!(last_word(&task), why);
    }
    let message = Message::user("m1", vec![Part::text("hello")]);
    let sent = neighbours().send_message(call("kit"), send(message)).await;
    let SendMessageResponse::Task(task) = sent.unwrap() else {
        panic!("no task");
    };
    assert_eq!(last_word(&task), "the message carries no instruction");
}

#[test]
fn instructions_have_the_kits_field_numbers() {
    let call = CallAgent {
        transport: "x".to_owned(),
        agent_card_uri: "y".to_owned(),
        instruction: Some(Box::new(say("z", true))),
        streaming: true,
        behavior: Some(Behavior::Resubscribe(Resubscribe {})),
    };
    let series = SeriesOfSteps {
        instructions: vec![Instruction::new(Step::CallAgent(call))],
        response_generator: 1,
    };
    let bytes = Instruction::new(Step::Steps(series)).encode_to_vec();
    let call = b"\x0a\x01x\x12\x01y\x1a\x07\x12\x05\x0a\x01z\x10\x01\x20\x01\x3a\x00";
    let mut wanted = vec![0x1a, 25, 0x0a, 21, 0x0a, 19];
    wanted.extend_from_slice(call);
    wanted.extend_from_slice(&[0x10, 1]);
    assert_eq!(bytes, wanted);
}
