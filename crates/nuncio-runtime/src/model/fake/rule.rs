//! What a scripted model is told.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::model::{ModelRequest, ToolResult, Turn, UserPart};

/// One rule: when it is for a request, and what the answer is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FakeRule {
    /// What the request must be like; all that is said must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<FakeWhen>,
    /// Whether it is for every request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub otherwise: bool,
    /// How often it is played at most; without limit if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
    /// The answer, step by step. Texts and arguments may say `{text}` for the newest words of the
    /// user and `{result}` for the newest result of a tool.
    pub reply: Vec<FakeReply>,
}

/// What a request must be like.
///
/// A rule without `after_tool` and `result_contains` is not for a request that brings results of
/// tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FakeWhen {
    /// What the newest words of the user contain; upper and lower case are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_contains: Option<String>,
    /// A tool whose result has just come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_tool: Option<String>,
    /// What a result that has just come contains; upper and lower case are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_contains: Option<String>,
    /// How many times the user has spoken, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// Whether a file has just come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_file: Option<bool>,
    /// What the instructions contain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_contains: Option<String>,
    /// A tool that the model may call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_tool: Option<String>,
}

/// One step of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FakeReply {
    /// Says this, word by word.
    Text(String),
    /// Thinks this.
    Reasoning(String),
    /// Calls a tool.
    Tool {
        /// Its name.
        name: String,
        /// What to call it with.
        #[serde(default = "no_arguments")]
        arguments: Value,
    },
    /// Waits so many milliseconds.
    WaitMs(u64),
    /// Fails.
    Error(FakeError),
    /// Breaks off without an end.
    Cut,
}

/// A failure to play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FakeError {
    /// The provider is overloaded.
    Unavailable,
    /// Too many requests.
    RateLimited,
    /// A request that the provider does not take.
    Invalid,
    /// A wrong key.
    Auth,
    /// A conversation that is too long.
    ContextTooLong,
    /// An answer that the provider withholds.
    Refused,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeFault {
    /// Where, such as `rules[0].reply[1]`.
    pub path: String,
    /// What.
    pub message: String,
}

impl fmt::Display for FakeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

fn no_arguments() -> Value {
    Value::Object(serde_json::Map::new())
}

/// Everything that is wrong with these rules.
pub(super) fn check(rules: &[FakeRule]) -> Vec<FakeFault> {
    let mut faults = Vec::new();
    let mut fault = |path: String, message: &str| {
        let message = message.to_owned();
        faults.push(FakeFault { path, message });
    };
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("rules[{index}]");
        match (&rule.when, rule.otherwise) {
            (None, false) => fault(path.clone(), "says neither `when` nor `otherwise = true`"),
            (Some(_), true) => fault(path.clone(), "says both `when` and `otherwise`"),
            (Some(when), false) if *when == FakeWhen::default() => {
                fault(format!("{path}.when"), "says nothing");
            }
            _ => {}
        }
        if rule.times == Some(0) {
            fault(format!("{path}.times"), "is 0: the rule is never played");
        }
        let ends = |step: &FakeReply| matches!(step, FakeReply::Error(_) | FakeReply::Cut);
        if let Some(end) = rule.reply.iter().position(ends)
            && end + 1 < rule.reply.len()
        {
            let path = format!("{path}.reply[{}]", end + 1);
            fault(path, "is never reached");
        }
    }
    faults
}

impl FakeRule {
    /// Whether it is for this request.
    pub(super) fn matches(&self, request: &ModelRequest) -> bool {
        let holds = |when: &FakeWhen| when.holds(&News::of(request), request);
        self.otherwise || self.when.as_ref().is_some_and(holds)
    }
}

impl FakeWhen {
    fn holds(&self, news: &News<'_>, request: &ModelRequest) -> bool {
        let wants_results = self.after_tool.is_some() || self.result_contains.is_some();
        let system = request.system.as_deref().unwrap_or_default();
        wants_results != news.results.is_empty()
            && said(&self.text_contains, |piece| contains(&news.text, piece))
            && said(&self.after_tool, |tool| {
                news.results.iter().any(|result| result.name == tool)
            })
            && said(&self.result_contains, |piece| {
                news.results
                    .iter()
                    .any(|result| contains(&result.content, piece))
            })
            && self.turn.is_none_or(|turn| turn == news.turn)
            && self.has_file.is_none_or(|wanted| wanted == news.has_file)
            && said(&self.system_contains, |piece| system.contains(piece))
            && said(&self.has_tool, |name| {
                request.tools.iter().any(|tool| tool.name == name)
            })
    }
}

fn said(condition: &Option<String>, holds: impl FnOnce(&str) -> bool) -> bool {
    condition.as_deref().is_none_or(holds)
}

fn contains(text: &str, piece: &str) -> bool {
    text.to_lowercase().contains(&piece.to_lowercase())
}

/// What has come since the model spoke last, and the newest words of the user.
pub(super) struct News<'a> {
    /// The newest words of the user, whenever they came.
    pub(super) text: String,
    /// Results of tools.
    pub(super) results: Vec<&'a ToolResult>,
    has_file: bool,
    turn: usize,
}

impl<'a> News<'a> {
    pub(super) fn of(request: &'a ModelRequest) -> Self {
        let turns = &request.turns;
        let spoke = |turn: &Turn| matches!(turn, Turn::Assistant { .. });
        let since = turns.iter().rposition(spoke).map_or(0, |at| at + 1);
        let mut news = Self {
            text: String::new(),
            results: Vec::new(),
            has_file: false,
            turn: 0,
        };
        for (index, turn) in turns.iter().enumerate() {
            match turn {
                Turn::User(parts) => {
                    let text = text_of(parts);
                    if !text.is_empty() {
                        news.turn += 1;
                        news.text = text;
                    }
                    let file = parts.iter().any(|p| !matches!(p, UserPart::Text(_)));
                    news.has_file |= file && index >= since;
                }
                Turn::Tools(results) if index >= since => news.results.extend(results),
                Turn::Tools(_) | Turn::Assistant { .. } => {}
            }
        }
        news
    }
}

fn text_of(parts: &[UserPart]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        UserPart::Text(text) => Some(text.as_str()),
        UserPart::File { .. } | UserPart::Url { .. } => None,
    });
    words.collect::<Vec<_>>().join("\n")
}
