//! What administrators ask for: agents, webhooks.

use std::sync::Arc;

use nuncio_engine::Webhooks;
use nuncio_server::{AdminFuture, AdminRequest, Administration};

use super::agents::Agents;
use super::push;

/// Who answers below `/admin/v1`.
#[derive(Debug)]
pub(super) struct Administrators {
    agents: Arc<Agents>,
    webhooks: Webhooks,
}

impl Administrators {
    pub(super) fn new(agents: Arc<Agents>, webhooks: Webhooks) -> Self {
        Self { agents, webhooks }
    }
}

impl Administration for Administrators {
    fn handle(&self, request: AdminRequest) -> AdminFuture<'_> {
        match request.path.strip_prefix("/push") {
            Some(below) if below.is_empty() || below.starts_with('/') => {
                let below = below.to_owned();
                Box::pin(async move { push::answer(&self.webhooks, &below, request).await })
            }
            _ => Box::pin(self.agents.answer(request)),
        }
    }
}
