//! One agent as this server offers it.

use std::sync::{Arc, OnceLock};

use http::HeaderName;
use nuncio_protocol::{
    AgentCard, AgentId, AgentService, Binding, Limits, StatusProfile, Timestamp,
    UnsupportedVersion, Version, WorkspaceId,
};

use crate::card::CardCache;
use crate::media::MediaRules;
use crate::{CallTrees, Files};

/// One agent at its address: who does the work, and what its card promises.
///
/// The card is a template: addresses and security are filled in when it is served. Its
/// capabilities decide which operations are offered, its extensions which are required.
#[derive(Debug)]
pub struct Endpoint {
    pub(crate) id: AgentId,
    pub(crate) service: Arc<dyn AgentService>,
    pub(crate) card: AgentCard,
    pub(crate) extended_card: Option<AgentCard>,
    pub(crate) limits: Limits,
    pub(crate) profile: StatusProfile,
    pub(crate) strict_version: bool,
    /// Oldest first.
    pub(crate) dialects: Vec<Version>,
    /// In the order of the card.
    pub(crate) bindings: Vec<Binding>,
    /// Empty for all.
    pub(crate) workspaces: Vec<WorkspaceId>,
    pub(crate) legacy_routes: bool,
    /// Names of headers that the agent may see.
    pub(crate) forwarded: Vec<HeaderName>,
    pub(crate) max_body_bytes: Option<usize>,
    pub(crate) media: MediaRules,
    pub(crate) modified: OnceLock<Timestamp>,
    pub(crate) cards: CardCache,
    pub(crate) call_trees: Option<Arc<dyn CallTrees>>,
    pub(crate) files: Option<Arc<dyn Files>>,
}

impl Endpoint {
    /// An agent under the name it has in its address.
    pub fn new(id: impl Into<AgentId>, card: AgentCard, service: Arc<dyn AgentService>) -> Self {
        Self {
            id: id.into(),
            media: MediaRules::of(&card),
            service,
            card,
            extended_card: None,
            limits: Limits::default(),
            profile: StatusProfile::default(),
            strict_version: false,
            dialects: Version::ALL.to_vec(),
            bindings: vec![Binding::JsonRpc, Binding::HttpJson, Binding::Grpc],
            workspaces: Vec::new(),
            legacy_routes: false,
            forwarded: Vec::new(),
            max_body_bytes: None,
            modified: OnceLock::new(),
            cards: CardCache::default(),
            call_trees: None,
            files: None,
        }
    }

    /// The name in the address.
    pub fn id(&self) -> &AgentId {
        &self.id
    }

    /// The card as configured, without addresses.
    pub fn card(&self) -> &AgentCard {
        &self.card
    }

    /// Sets the card for authenticated callers; without it the service is asked. Spec: §13.3
    #[must_use]
    pub fn with_extended_card(mut self, card: AgentCard) -> Self {
        self.extended_card = Some(card);
        self
    }

    /// Sets how large the pieces of a request may be.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets which text of version 1.0 decides the status of errors.
    #[must_use]
    pub fn with_status_profile(mut self, profile: StatusProfile) -> Self {
        self.profile = profile;
        self
    }

    /// Refuses requests that do not name their version (VER-03).
    #[must_use]
    pub fn with_strict_version(mut self, strict: bool) -> Self {
        self.strict_version = strict;
        self
    }

    /// Sets which versions are spoken, instead of all; without any nobody is understood.
    #[must_use]
    pub fn with_dialects(mut self, versions: impl IntoIterator<Item = Version>) -> Self {
        self.dialects = versions.into_iter().collect();
        self.dialects.sort_unstable();
        self.dialects.dedup();
        self
    }

    /// Sets over which bindings it is called, instead of all; without any nobody is understood. The card
    /// has them in this order.
    #[must_use]
    pub fn with_bindings(mut self, bindings: impl IntoIterator<Item = Binding>) -> Self {
        self.bindings = bindings.into_iter().collect();
        self
    }

    /// Sets in which workspaces it is found, instead of all.
    #[must_use]
    pub fn with_workspaces(
        mut self,
        workspaces: impl IntoIterator<Item = impl Into<WorkspaceId>>,
    ) -> Self {
        self.workspaces = workspaces.into_iter().map(Into::into).collect();
        self
    }

    /// Serves the routes of OxyGent's gateway too: `/messages/send`, `/tasks/get`, `/tasks/cancel`
    /// and plain bodies with an `action`.
    #[must_use]
    pub fn with_legacy_routes(mut self, legacy: bool) -> Self {
        self.legacy_routes = legacy;
        self
    }

    /// Lets the agent see these headers of requests, instead of none.
    #[must_use]
    pub fn with_forwarded_headers(mut self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.forwarded = names.into_iter().collect();
        self
    }

    /// Shows callers what the runs of their tasks have done, at `GET {agent}/tasks/{id}:trace`.
    ///
    /// The query `content=false` leaves out what went into the steps and came out of them.
    #[must_use]
    pub fn with_call_trees(mut self, trees: Arc<dyn CallTrees>) -> Self {
        self.call_trees = Some(trees);
        self
    }

    /// Gives callers the content of their tasks as it is, part by part, at
    /// `GET {agent}/tasks/{id}/artifacts/{artifact}/parts/{n}`; likewise for `messages`.
    #[must_use]
    pub fn with_files(mut self, files: Arc<dyn Files>) -> Self {
        self.files = Some(files);
        self
    }

    /// Whether it is found in a workspace.
    pub(crate) fn is_in(&self, workspace: &str) -> bool {
        self.workspaces.is_empty() || self.workspaces.iter().any(|w| w.as_str() == workspace)
    }

    /// Settles the version of a request: the one it names, else the one that it proves by its
    /// method or path, else the oldest (VER-02..05).
    pub(crate) fn settle(
        &self,
        said: Option<&str>,
        proven: Option<Version>,
    ) -> Result<Version, UnsupportedVersion> {
        let unsupported = |text: &str| UnsupportedVersion {
            asked: text.trim().to_owned(),
            supported: self.dialects.clone(),
        };
        match said {
            Some(text) => Version::parse(text)
                .ok()
                .filter(|version| self.dialects.contains(version))
                .ok_or_else(|| unsupported(text)),
            None if self.strict_version => Err(unsupported("")),
            None => proven
                .or_else(|| self.dialects.first().copied())
                .ok_or_else(|| unsupported("")),
        }
    }

    /// Sets the bytes of a request body for this agent alone.
    #[must_use]
    pub fn with_max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = Some(bytes);
        self
    }

    /// Sets since when the card is as it is; else the time it is first served.
    #[must_use]
    pub fn with_modified(self, at: Timestamp) -> Self {
        let _ = self.modified.set(at);
        self
    }
}
