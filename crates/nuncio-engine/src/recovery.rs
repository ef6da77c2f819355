//! After a crash: runs that nobody continues are resumed or ended.

use std::collections::HashSet;
use std::sync::Arc;

use nuncio_protocol::{Caller, TaskState, Timestamp};
use nuncio_store::{Append, Appended, Claim, ClaimedRun, Head, HeldRun, LeaseChange, StoreError};

use crate::Agent;
use crate::cell::{Cell, QueuedMessage};
use crate::end::End;
use crate::engine::Core;
use crate::place::Checkpoints;
use crate::rerun::is_rerun;
use crate::run::Start;

/// Runs claimed at a time.
const CLAIM: usize = 100;

impl Core {
    /// Takes up every run that may be claimed; gives their number.
    ///
    /// Page by page, so that it may go on beside requests; ends early when the engine drains.
    pub(crate) async fn recover(self: &Arc<Self>, claim: Claim) -> Result<usize, StoreError> {
        let mut taken = 0;
        loop {
            if self.is_draining() {
                return Ok(taken);
            }
            let claimed = self.claimed(claim.clone()).await?;
            let count = claimed.len();
            for run in claimed {
                self.take_up(run).await?;
            }
            taken += count;
            if count < CLAIM {
                return Ok(taken);
            }
        }
    }

    async fn claimed(&self, claim: Claim) -> Result<Vec<ClaimedRun>, StoreError> {
        self.store.claim_expired(self.lease(), claim, CLAIM).await
    }

    /// Runs whose lease is over; where other processes may host other agents, of those hosted here.
    pub(crate) fn expired(&self) -> Claim {
        match self.shared {
            true => Claim::ExpiredOf(self.agents.read().keys().cloned().collect()),
            false => Claim::Expired,
        }
    }

    /// Lets go of runs that this process holds without knowing: the store took a send or a claim,
    /// and the answer was lost. Anybody may claim them then.
    ///
    /// `seen` is what was unknown the last time: an answer that is only late is waited for.
    pub(crate) async fn let_strays_go(
        &self,
        seen: &mut HashSet<HeldRun>,
    ) -> Result<(), StoreError> {
        let mut held = self.store.held(&self.owner).await?;
        held.retain(|run| !self.knows(run));
        for stray in held.iter().filter(|run| seen.contains(run)) {
            tracing::warn!(task.id = %stray.task, "a run that nobody began is given up");
            self.let_go(stray).await?;
        }
        *seen = held.into_iter().collect();
        Ok(())
    }

    fn knows(&self, held: &HeldRun) -> bool {
        let cell = self.hub.live(&held.scope, &held.task);
        let run = cell.and_then(|cell| cell.view(|view| view.run.clone()));
        run.is_some_and(|run| run.inner.epoch == held.epoch)
    }

    async fn let_go(&self, stray: &HeldRun) -> Result<(), StoreError> {
        let Some(stored) = self.store.load(&stray.scope, &stray.task).await? else {
            return Ok(());
        };
        let status = &stored.task.status;
        // Whoever is quicker has it.
        let _: Appended = self
            .store
            .append(Append {
                scope: stray.scope.clone(),
                task: stray.task.clone(),
                after: stored.head.last,
                epoch: Some(stray.epoch),
                events: Vec::new(),
                state: status.state,
                status_time: status.timestamp.unwrap_or(Timestamp::from_unix_ms(0)),
                snapshot: None,
                lease: LeaseChange::Release,
                turn: None,
                checkpoint: None,
                request: None,
                idempotency: None,
                push_config: None,
            })
            .await?;
        Ok(())
    }

    /// Resumes a run if its agent says that it may run again, else ends its task (ST-09).
    async fn take_up(
        self: &Arc<Self>,
        ClaimedRun { stored }: ClaimedRun,
    ) -> Result<(), StoreError> {
        let scope = stored.scope.clone();
        let Head {
            turn,
            epoch,
            attempt,
            ..
        } = stored.head;
        let agent = self.agents.read().get(&scope.agent).cloned();
        if agent.is_none() && self.shared {
            // Another process may host it: the lease runs out, and that process takes it up.
            return Ok(());
        }
        let cell = self.hub.of_stored(&stored).await;
        let _writing = cell.writing.lock().await;
        if cell.is_behind(&stored.head) {
            cell.replace(stored);
        }
        let mut pending = self.unanswered(&cell, turn).await?.into_iter();
        let caller = Caller {
            id: scope.caller,
            workspace: scope.workspace,
        };
        let message = pending.next();
        let first = self.first_trace(&cell.scope, &cell.id).await?;
        let request = message.as_ref().map(|m| m.request.clone());
        let request = request.unwrap_or_default();
        let resumable = agent
            .as_ref()
            .is_some_and(|agent| self.is_resumable(&cell, agent));
        let cx = self.prepare(&cell, caller, epoch, attempt, first, &request);
        match (agent, message) {
            (Some(agent), Some(message))
                if resumable && !is_rerun(message.request.metadata.as_ref()) =>
            {
                pending.for_each(|queued| cx.inner.queue.push(queued));
                self.launch(
                    Start {
                        cell: Arc::clone(&cell),
                        agent,
                        message,
                        draft: None,
                        guard: None,
                    },
                    cx,
                    false,
                );
            }
            _ => {
                let reason = "the task was interrupted by a restart of the server".to_owned();
                self.launch_end(
                    Arc::clone(&cell),
                    cx,
                    End::Stopped(TaskState::Failed, reason),
                );
            }
        }
        Ok(())
    }

    /// Whether the agent that has the task says that its runs may begin again. One that is gone is told
    /// where it is looked for.
    fn is_resumable(&self, cell: &Cell, agent: &Arc<dyn Agent>) -> bool {
        let left = cell.view(|view| view.head.checkpoint.clone());
        match Checkpoints::read(left.as_deref()).holder {
            None => agent.info().resumable,
            Some(holder) => {
                let agents = self.agents.read();
                let agent = agents.get(&holder.agent);
                agent.is_none_or(|agent| agent.info().resumable)
            }
        }
    }

    /// The message of the turn that was cut off, and those that came after it.
    async fn unanswered(&self, cell: &Cell, turn: u64) -> Result<Vec<QueuedMessage>, StoreError> {
        let mut found = Vec::new();
        let (mut after, last) = (turn.saturating_sub(1), cell.snapshot().1);
        while after < last {
            let read = self.store.events(&cell.scope, &cell.id, after, 256);
            let events = read.await?;
            let Some(last) = events.last().and_then(|event| event.position) else {
                break;
            };
            found.extend(self.to_answer(cell, &events).await?);
            after = last;
        }
        Ok(found)
    }
}
