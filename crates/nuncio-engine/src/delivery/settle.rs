//! What follows from a call: the cursor moves, the event waits, is given up, or the webhook is disabled.

use nuncio_store::{DeadLetter, Disabled, LetterChange, StoreError};

use super::backoff::{Failure, Streak, Verdict};
use super::call::{Answer, Called};
use super::claim::HELD;
use super::turn::{Delivering, Due, Step, TurnEnd};

impl Delivering<'_> {
    /// Draws the consequences of an answer; `last` is the newest position of the task.
    pub(super) async fn settle(
        &mut self,
        due: Due,
        called: Called,
        last: u64,
    ) -> Result<Step, StoreError> {
        match called.answer {
            Answer::Taken => self.taken(due).await,
            Answer::Gone => {
                // Nothing of what its calls came to matters any more.
                self.disable(Disabled::Gone, &called).await
            }
            Answer::Failed(failure) => self.failed(due, &called, failure, last).await,
        }
    }

    async fn taken(&mut self, due: Due) -> Result<Step, StoreError> {
        self.progress.streak = Streak::default();
        let letter = match due.letter {
            Some(letter) => LetterChange::Remove(letter.position),
            None => {
                self.progress.done = self.progress.done.max(due.upto);
                LetterChange::Keep
            }
        };
        let held = self.note(Default::default(), letter).await?;
        Ok(go_on(held))
    }

    async fn failed(
        &mut self,
        due: Due,
        called: &Called,
        failure: Failure,
        last: u64,
    ) -> Result<Step, StoreError> {
        // The same for all calls for it, whatever has come since.
        let first = match &due.letter {
            Some(letter) => letter.position,
            None => self.progress.done + 1,
        };
        let attempts = match &due.letter {
            Some(letter) => letter.attempts.saturating_add(1),
            None => self.progress.streak.next_attempt(),
        };
        let settings = &self.courier.outbound.settings;
        let (now, key) = (self.courier.core.now(), self.key);
        let streak = &mut self.progress.streak;
        let mut verdict = streak.fail(&failure, (first, last), now, settings, key);
        if due.letter.is_some() && failure.is_refusal {
            // It had its attempts before it was given up.
            verdict = Verdict::GiveUp;
        }
        if streak.down_for() >= settings.disable_after {
            return self.disable(Disabled::Failing, called).await;
        }
        let outcome = called.outcome.word();
        let ((_, task), id) = key;
        match verdict {
            Verdict::Retry(wait) => {
                tracing::debug!(task.id = %task, webhook.id = %id, webhook.host = self.host,
                    event.position = due.upto, outcome, "a webhook did not take an event");
                let state = streak.state(now, Some(wait));
                self.note(state, LetterChange::Keep).await?;
                Ok(Step::Break(TurnEnd::after(wait)))
            }
            Verdict::GiveUp => {
                tracing::warn!(task.id = %task, webhook.id = %id, webhook.host = self.host,
                    event.position = due.upto, outcome, "an event is given up for a webhook");
                let state = streak.state(now, None);
                let letter = DeadLetter {
                    position: due.upto,
                    given_up: due.letter.as_ref().map_or(now, |letter| letter.given_up),
                    attempts,
                    cause: outcome,
                    requested: false,
                };
                if due.letter.is_none() {
                    self.progress.done = self.progress.done.max(due.upto);
                }
                let held = self.note(state, LetterChange::Put(letter)).await?;
                Ok(go_on(held))
            }
        }
    }

    /// Makes no further call of a webhook, unless somebody has just changed it.
    ///
    /// What it has not had stays where it is, for when it is enabled again.
    async fn disable(&mut self, reason: Disabled, called: &Called) -> Result<Step, StoreError> {
        if self.courier.core.hub.wakes.has_changed(self.key) {
            return Ok(Step::Break(TurnEnd::More));
        }
        let ((_, task), id) = self.key;
        tracing::warn!(task.id = %task, webhook.id = %id, webhook.host = self.host,
            reason = reason.as_str(), outcome = called.outcome.word(), "a webhook is disabled");
        let mut state = self.progress.streak.state(called.at, None);
        state.last_call = Some(called.at);
        state.disabled = Some(reason);
        self.note(state, LetterChange::Keep).await?;
        Ok(Step::Break(TurnEnd::Idle))
    }
}

/// Goes on if the webhook is still ours.
fn go_on(held: bool) -> Step {
    if held {
        Step::Continue(())
    } else {
        Step::Break(TurnEnd::after(HELD))
    }
}
