//! One of several, by rules or by another agent's word.

use nuncio_protocol::AgentId;

use super::output::Output;
use super::step::{Flow, Stop, To};
use crate::When;

/// One of several agents gets the message.
#[derive(Clone, Debug)]
pub enum Route {
    /// The first whose rule the message fits.
    Rules(Vec<Choice>),
    /// The one that an agent names.
    Router {
        /// Who names it, given the message.
        router: AgentId,
        /// Who may be named.
        members: Vec<AgentId>,
    },
}

/// One of the ways.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What the message must be like; any will do if absent.
    pub when: Option<When>,
    /// Who gets it.
    pub agent: AgentId,
}

impl Route {
    pub(super) fn members(&self) -> Vec<&AgentId> {
        match self {
            Self::Rules(choices) => choices.iter().map(|choice| &choice.agent).collect(),
            Self::Router { router, members } => members.iter().chain([router]).collect(),
        }
    }

    pub(super) async fn play(&self, flow: &Flow<'_>) -> Result<Output, Stop> {
        let message = flow.message();
        let chosen = match self {
            Self::Rules(choices) => {
                let fits = |choice: &&Choice| {
                    choice
                        .when
                        .as_ref()
                        .is_none_or(|when| when.holds(&message, 1))
                };
                let chosen = choices.iter().find(fits);
                let none = || Stop::Rejected("no route fits this message".to_owned());
                chosen.map(|choice| &choice.agent).ok_or_else(none)?
            }
            Self::Router { router, members } => {
                let answer = flow.step("router", router, message.clone(), To::Flow);
                named(router, members, &flow.passed_on(&answer.await?).text())?
            }
        };
        flow.step("chosen", chosen, message, To::Task).await
    }
}

/// The member that a router has named.
fn named<'a>(router: &AgentId, members: &'a [AgentId], answer: &str) -> Result<&'a AgentId, Stop> {
    let answer = answer.trim().trim_matches(['"', '`', '.']);
    let found = members.iter().find(|member| member.as_str() == answer);
    found.ok_or_else(|| {
        let members: Vec<&str> = members.iter().map(AgentId::as_str).collect();
        let shown: String = answer.chars().take(100).collect();
        Stop::failed(format!(
            "agent {router} chose \"{shown}\", which is none of {}",
            members.join(", ")
        ))
    })
}
