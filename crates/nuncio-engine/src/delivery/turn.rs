//! A webhook's turn: the events it has not had yet, one by one, until something fails.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use nuncio_protocol::dialect::{self, JsonRpcDialect};
use nuncio_protocol::{Event, StreamResponse, Task};
use nuncio_store::{PushConfigRow, StoreError, Webhook};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::backoff::{Streak, Verdict};
use super::call::{Answer, call};
use super::{Courier, WebhookKey};

/// Calls in one turn; then others have theirs.
const CALLS: usize = 16;

/// Events read at a time.
const FETCH: usize = 64;

/// How long to leave a store alone that does not answer.
const STORE_PAUSE: Duration = Duration::from_secs(2);

/// What is known of a webhook between its turns.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// The newest position that is done with, whether the store has taken it yet or not.
    done: u64,
    streak: Streak,
}

/// How a turn ended.
#[derive(Debug)]
pub(super) enum TurnEnd {
    /// There is nothing more to deliver, or the webhook is gone.
    Idle,
    /// There is more.
    More,
    /// The webhook is at this host, not at the one it was taken to be.
    Elsewhere(Arc<str>),
    /// The next call is for this time.
    Later(Instant),
}

/// What is next to tell.
struct Due {
    /// `None` if there is nothing to tell up to `upto`.
    event: Option<Event>,
    /// The position that is done with once it has been told.
    upto: u64,
}

/// A task as of a position.
type AsOf = (Arc<Task>, u64);

impl Courier {
    /// Delivers to one webhook, which nobody else does at the same time.
    pub(super) async fn turn(
        &self,
        key: &WebhookKey,
        host: &str,
        progress: &mut Progress,
        stopping: &CancellationToken,
    ) -> TurnEnd {
        match self.deliver(key, host, progress, stopping).await {
            Ok(end) => end,
            Err(error) => {
                tracing::warn!(task.id = %key.0.1, webhook.id = %key.1, %error, "a webhook waits for the store");
                TurnEnd::Later(Instant::now() + STORE_PAUSE)
            }
        }
    }

    async fn deliver(
        &self,
        key: &WebhookKey,
        host: &str,
        progress: &mut Progress,
        stopping: &CancellationToken,
    ) -> Result<TurnEnd, StoreError> {
        let (mut known, mut queue) = (None, VecDeque::new());
        let mut task: Option<AsOf> = None;
        for _ in 0..CALLS {
            if self.core.hub.wakes.has_changed(key) {
                known = None;
                queue.clear();
            }
            let webhook = match known.take() {
                Some(webhook) => webhook,
                None => match self.row(key).await? {
                    Some(row) => {
                        progress.done = progress.done.max(row.cursor);
                        row.webhook
                    }
                    None => return Ok(TurnEnd::Idle),
                },
            };
            let at = host_of(&webhook);
            if *at != *host {
                return Ok(TurnEnd::Elsewhere(at));
            }
            if queue.is_empty() {
                queue = self.events(key, progress.done).await?;
            }
            let Some(newest) = queue.back().and_then(|event| event.position) else {
                return Ok(TurnEnd::Idle);
            };
            let dialect = dialect::json_rpc(webhook.version);
            let whole = dialect.notifies_of_whole_tasks();
            let as_of = match task.take() {
                Some(as_of) if as_of.1 >= newest && !whole => as_of,
                _ => match self.task(key, newest).await? {
                    Some(as_of) => as_of,
                    None => return Ok(TurnEnd::Idle),
                },
            };
            let due = due(&mut queue, whole, as_of.1);
            let Some(event) = due.event else {
                self.advance(key, progress, due.upto).await?;
                (known, task) = (Some(webhook), Some(as_of));
                continue;
            };
            if stopping.is_cancelled() {
                return Ok(TurnEnd::More);
            }
            // What was read may be out of date by now; nothing is awaited from here to the call.
            if self.core.hub.wakes.has_changed(key) {
                queue.clear();
                continue;
            }
            let answer = self.call(&webhook, dialect, &event, &as_of.0, due.upto);
            let answer = answer.await;
            let settled = self.settle(key, host, progress, answer, due.upto, as_of.1);
            if let Some(end) = settled.await? {
                return Ok(end);
            }
            (known, task) = (Some(webhook), Some(as_of));
        }
        Ok(TurnEnd::More)
    }

    /// Draws the consequences of an answer for the event at `told`; `last` is the newest one.
    async fn settle(
        &self,
        key: &WebhookKey,
        host: &str,
        progress: &mut Progress,
        answer: Answer,
        told: u64,
        last: u64,
    ) -> Result<Option<TurnEnd>, StoreError> {
        let failure = match answer {
            Answer::Taken => {
                progress.streak = Streak::default();
                self.advance(key, progress, told).await?;
                return Ok(None);
            }
            Answer::Gone => {
                self.disable(key).await?;
                return Ok(Some(TurnEnd::More));
            }
            Answer::Failed(failure) => failure,
        };
        // The same for all calls for it, whatever has come since.
        let first = progress.done + 1;
        let ((_, task), id) = key;
        let cause = &failure.cause;
        let streak = &mut progress.streak;
        match streak.fail(&failure, first, last, &self.settings, key) {
            Verdict::Retry(at) => {
                tracing::debug!(task.id = %task, webhook.id = %id, webhook.host = host,
                    event.position = told, cause, "a webhook did not take an event");
                Ok(Some(TurnEnd::Later(at)))
            }
            Verdict::GiveUp => {
                tracing::warn!(task.id = %task, webhook.id = %id, webhook.host = host,
                    event.position = told, cause, "an event is given up for a webhook");
                self.advance(key, progress, told).await?;
                Ok(None)
            }
        }
    }

    async fn row(&self, key: &WebhookKey) -> Result<Option<PushConfigRow>, StoreError> {
        let ((scope, task), id) = key;
        let rows = self.core.store.push_configs(scope, task).await?;
        let mut rows = rows.unwrap_or_default().into_iter();
        Ok(rows.find(|row| row.webhook.config.id.as_ref() == Some(id)))
    }

    async fn events(&self, key: &WebhookKey, done: u64) -> Result<VecDeque<Event>, StoreError> {
        let ((scope, task), _) = key;
        let events = self.core.store.events(scope, task, done, FETCH).await?;
        Ok(events.into())
    }

    /// The task with at least the event at a position.
    async fn task(&self, key: &WebhookKey, position: u64) -> Result<Option<AsOf>, StoreError> {
        let ((scope, task), _) = key;
        let live = self.core.hub.live(scope, task).map(|cell| cell.snapshot());
        if let Some(as_of) = live.filter(|(_, last)| *last >= position) {
            return Ok(Some(as_of));
        }
        let stored = self.core.store.load(scope, task).await?;
        Ok(stored.map(|stored| (stored.task, stored.head.last)))
    }

    async fn call(
        &self,
        webhook: &Webhook,
        dialect: &dyn JsonRpcDialect,
        event: &Event,
        task: &Task,
        position: u64,
    ) -> Answer {
        let notification = dialect.encode_notification(event, task);
        let event_id = format!("{}.{position}", task.id);
        call(
            &self.egress,
            self.core.environment.clock.as_ref(),
            webhook,
            &event_id,
            notification,
            self.settings.call_timeout,
        )
        .await
    }

    /// Notes what is done with; only what the receiver has taken, or will not be asked to again.
    async fn advance(
        &self,
        key: &WebhookKey,
        progress: &mut Progress,
        upto: u64,
    ) -> Result<(), StoreError> {
        progress.done = progress.done.max(upto);
        let ((_, task), id) = key;
        let store = &self.core.store;
        store.advance_push_cursor(task, id, progress.done).await
    }

    /// Deletes a webhook whose receiver is gone, unless somebody has just changed it.
    async fn disable(&self, key: &WebhookKey) -> Result<(), StoreError> {
        if self.core.hub.wakes.has_changed(key) {
            return Ok(());
        }
        let ((scope, task), id) = key;
        tracing::warn!(task.id = %task, webhook.id = %id, "a webhook is deleted: its receiver is gone (410)");
        let store = &self.core.store;
        store.delete_push_config(scope, task, id).await?;
        Ok(())
    }
}

/// Takes what is next out of the queue, `last` being the position of the task at hand.
///
/// Messages of the user are part of the log, not of what is told. Where whole tasks are told, the
/// newest event stands for all.
fn due(queue: &mut VecDeque<Event>, whole: bool, last: u64) -> Due {
    let (mut event, mut upto) = (None, 0);
    while let Some(next) = queue.pop_front() {
        upto = next.position.unwrap_or(upto);
        if matches!(next.response(), StreamResponse::Message(_)) {
            continue;
        }
        event = Some(next);
        if !whole {
            break;
        }
    }
    if whole && event.is_some() {
        upto = upto.max(last);
    }
    Due { event, upto }
}

/// The host and port of a webhook, as far as its URL has one.
pub(super) fn host_of(webhook: &Webhook) -> Arc<str> {
    let url = url::Url::parse(&webhook.config.url);
    url.map_or_else(
        |_| Arc::from(""),
        |url| Arc::from(&url[url::Position::BeforeHost..url::Position::AfterPort]),
    )
}
