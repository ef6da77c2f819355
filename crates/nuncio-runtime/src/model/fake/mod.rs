//! A model that plays rules, for tests and demonstrations without a network.

mod play;
mod rule;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Model, ModelError, ModelFuture, ModelRequest, ModelStream};

pub use rule::{FakeError, FakeFault, FakeReply, FakeRule, FakeWhen};

/// A model that answers by rules, and the same every time.
///
/// The first rule that matches is played. Clones share what they have seen.
#[derive(Clone, Debug)]
pub struct FakeModel {
    name: Arc<str>,
    rules: Arc<[FakeRule]>,
    seen: Arc<Mutex<Seen>>,
}

/// The newest requests, and how often each rule was played.
#[derive(Debug, Default)]
struct Seen {
    requests: Vec<ModelRequest>,
    played: Vec<u32>,
}

/// How many requests are remembered.
const REMEMBERED: usize = 100;

impl FakeModel {
    /// A model of these rules.
    ///
    /// # Errors
    /// Every [`FakeFault`] of the rules.
    pub fn new(name: impl Into<Arc<str>>, rules: Vec<FakeRule>) -> Result<Self, Vec<FakeFault>> {
        let faults = rule::check(&rules);
        if !faults.is_empty() {
            return Err(faults);
        }
        let seen = Seen {
            requests: Vec::new(),
            played: vec![0; rules.len()],
        };
        Ok(Self {
            name: name.into(),
            rules: rules.into(),
            seen: Arc::new(Mutex::new(seen)),
        })
    }

    /// The requests it got, oldest first; the newest hundred.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.seen.lock().requests.clone()
    }

    /// Remembers the request and chooses the rule for it.
    fn choose(&self, request: &ModelRequest) -> Option<FakeRule> {
        let mut seen = self.seen.lock();
        if seen.requests.len() == REMEMBERED {
            seen.requests.remove(0);
        }
        seen.requests.push(request.clone());
        let index = self.rules.iter().enumerate().position(|(index, rule)| {
            rule.times.is_none_or(|times| seen.played[index] < times) && rule.matches(request)
        })?;
        seen.played[index] += 1;
        Some(self.rules[index].clone())
    }
}

impl Model for FakeModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn generate(&self, request: ModelRequest) -> ModelFuture<'_, ModelStream> {
        Box::pin(async move {
            match self.choose(&request) {
                Some(rule) => Ok(play::play(&self.name, rule.reply, &request)),
                None => Err(ModelError::Invalid(
                    "no rule of the scripted model matches".to_owned(),
                )),
            }
        })
    }
}
