//! Named state: of the run, of the conversation, and what conversations share.

use std::collections::BTreeMap;

use nuncio_store::{SessionAppended, StateChange, StateScope, StoreError};
use serde_json::Value;

use super::{Session, SessionError, text, value};

/// How often a state is set anew that somebody's entries were in the way of.
const MAX_TRIES: u32 = 100;

pub(super) const RUN: &str = "run:";
const CALLER: &str = "caller:";
const AGENT: &str = "agent:";

impl Session {
    /// Sets a state, whatever has come to the conversation: the last one to set it counts.
    ///
    /// To have it together with entries, or only as long as nothing has come, [`Session::commit`].
    ///
    /// # Errors
    /// [`SessionError`], but for [`SessionError::Moved`]; nothing was written then, unless the store
    /// says otherwise.
    pub async fn set(&mut self, name: &str, value: Value) -> Result<(), SessionError> {
        self.change(name, Some(value)).await
    }

    /// Removes a state, whatever has come to the conversation.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub async fn remove(&mut self, name: &str) -> Result<(), SessionError> {
        self.change(name, None).await
    }

    async fn change(&mut self, name: &str, value: Option<Value>) -> Result<(), SessionError> {
        let change = (name.to_owned(), value);
        if name.starts_with(RUN) {
            return self.commit(Vec::new(), vec![change]).await;
        }
        let mut append = self.append_of(&[], vec![stored_change(change)?]);
        for _ in 0..MAX_TRIES {
            match self.sessions.store.append_session(append.clone()).await? {
                SessionAppended::Done { .. } => return Ok(()),
                // What has come is still to be seen: only this write goes after it.
                SessionAppended::Conflict { last } => append.after = last,
            }
        }
        let busy = "others write to the conversation all the time".to_owned();
        Err(SessionError::Store(StoreError::Unavailable(busy)))
    }

    /// All states that the conversation shares, by their names with prefixes.
    ///
    /// # Errors
    /// [`SessionError::Store`].
    pub async fn state(&self) -> Result<BTreeMap<String, Value>, SessionError> {
        let stored = self.sessions.store.state(&self.key).await?;
        let mut state = self.sessions.run.lock().clone();
        for of in stored {
            let name = format!("{}{}", prefix(of.scope), of.name);
            state.insert(name, value(&of.value)?);
        }
        Ok(state)
    }

    /// One state.
    ///
    /// # Errors
    /// [`SessionError::Store`].
    pub async fn get(&self, name: &str) -> Result<Option<Value>, SessionError> {
        if name.starts_with(RUN) {
            return Ok(self.sessions.run.lock().get(name).cloned());
        }
        Ok(self.state().await?.remove(name))
    }
}

fn prefix(scope: StateScope) -> &'static str {
    match scope {
        StateScope::Context => "",
        StateScope::Caller => CALLER,
        StateScope::Agent => AGENT,
    }
}

pub(super) fn stored_change(
    (name, value): (String, Option<Value>),
) -> Result<StateChange, SessionError> {
    let (scope, own) = match (name.strip_prefix(CALLER), name.strip_prefix(AGENT)) {
        (Some(own), _) => (StateScope::Caller, own),
        (_, Some(own)) => (StateScope::Agent, own),
        (None, None) => (StateScope::Context, name.as_str()),
    };
    if own.is_empty() {
        return Err(SessionError::Nameless(name));
    }
    Ok(StateChange {
        scope,
        name: own.into(),
        value: value.as_ref().map(text),
    })
}
