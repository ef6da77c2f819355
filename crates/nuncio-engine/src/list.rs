//! Listing tasks, and page tokens that only we can make.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use nuncio_protocol::{
    A2aError, Call, ListTasksRequest, ListTasksResponse, Result, Task, TaskId, Timestamp,
};
use nuncio_store::{ListFilter, PageKey, Scope};
use sha2::Sha256;

use crate::HostedAgent;
use crate::engine::store_error;

const DEFAULT_PAGE: i32 = 50;
/// Messages of history per task if the request says nothing (OP-LIST-11).
const DEFAULT_HISTORY: i32 = 100;
pub(crate) const MAC_BYTES: usize = 16;

impl HostedAgent {
    pub(crate) async fn list(
        &self,
        call: Call,
        request: ListTasksRequest,
    ) -> Result<ListTasksResponse> {
        let scope = self.scope(&call);
        let filter = ListFilter {
            context: request.context_id.clone(),
            state: request.status,
            not_before: request.status_timestamp_after,
        };
        let tokens = PageTokens {
            key: &self.core.environment.token_key,
            scope: &scope,
            filter: &filter,
        };
        let from = match request.page_token.as_deref() {
            None | Some("") => None,
            Some(token) => Some(tokens.open(token).ok_or_else(|| {
                A2aError::invalid_field(
                    "pageToken",
                    "is not a token of this list with these filters",
                )
            })?),
        };
        let size = request.page_size.unwrap_or(DEFAULT_PAGE);
        let limit = usize::try_from(size).unwrap_or(1);
        let page = self
            .core
            .store
            .list(&scope, &filter, from.as_ref(), limit)
            .await;
        let page = page.map_err(|error| store_error(&error))?;
        let include_artifacts = request.include_artifacts.unwrap_or_default();
        let history = request.history_length.unwrap_or(DEFAULT_HISTORY);
        let mut response = ListTasksResponse::default();
        for task in &page.tasks {
            let shown = listed(task, history, include_artifacts);
            let complete = self.core.store.complete(&scope, shown).await;
            let complete = complete.map_err(|error| store_error(&error))?;
            response.tasks.push(complete);
        }
        response.next_page_token = page.next.map(|key| tokens.seal(&key)).unwrap_or_default();
        response.artifacts_included = include_artifacts;
        response.page_size = size;
        response.total_size = i32::try_from(page.total).unwrap_or(i32::MAX);
        Ok(response)
    }
}

/// A task as a list shows it, without copying what it does not show.
fn listed(task: &Task, history: i32, artifacts: bool) -> Task {
    let mut shown = Task::default();
    shown.id = task.id.clone();
    shown.context_id.clone_from(&task.context_id);
    shown.status = task.status.clone();
    shown.metadata.clone_from(&task.metadata);
    let from = task
        .history
        .len()
        .saturating_sub(usize::try_from(history).unwrap_or(0));
    shown.history = task.history[from..].to_vec();
    if artifacts {
        shown.artifacts.clone_from(&task.artifacts);
    }
    shown
}

/// Makes and reads the page tokens of one caller and one set of filters (OP-LIST-03).
struct PageTokens<'a> {
    key: &'a [u8; 32],
    scope: &'a Scope,
    filter: &'a ListFilter,
}

impl PageTokens<'_> {
    fn seal(&self, key: &PageKey) -> String {
        let time = key.status_time.unix_ms().to_be_bytes();
        let id = key.task.as_str().as_bytes();
        let mac = self.mac(&time, id).finalize().into_bytes();
        URL_SAFE_NO_PAD.encode([&mac[..MAC_BYTES], &time, id].concat())
    }

    fn open(&self, token: &str) -> Option<PageKey> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (mac, rest) = bytes.split_at_checked(MAC_BYTES)?;
        let (time, id) = rest.split_first_chunk::<8>()?;
        self.mac(time, id).verify_truncated_left(mac).ok()?;
        Some(PageKey {
            status_time: Timestamp::from_unix_ms(i64::from_be_bytes(*time)),
            task: TaskId::from(std::str::from_utf8(id).ok()?),
        })
    }

    fn mac(&self, time: &[u8; 8], id: &[u8]) -> Hmac<Sha256> {
        let context = self
            .filter
            .context
            .as_ref()
            .map_or("", |context| context.as_str());
        let fields: [&[u8]; 7] = [
            b"list-1",
            self.scope.workspace.as_str().as_bytes(),
            self.scope.agent.as_str().as_bytes(),
            self.scope.caller.as_str().as_bytes(),
            context.as_bytes(),
            self.filter
                .state
                .map_or("", |state| state.as_str())
                .as_bytes(),
            &self
                .filter
                .not_before
                .map_or([0xff; 8], |time| time.unix_ms().to_be_bytes()),
        ];
        mac(self.key, fields.into_iter().chain([&time[..], id]))
    }
}

/// Authenticates fields, each with its length.
pub(crate) fn mac<'f>(key: &[u8; 32], fields: impl IntoIterator<Item = &'f [u8]>) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key length is taken");
    for field in fields {
        mac.update(&(field.len() as u64).to_be_bytes());
        mac.update(field);
    }
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OP-LIST-03, OP-LIST-13: nobody else's token, no other filter's, no altered one.
    #[test]
    fn tokens_open_only_for_their_caller_and_filters() {
        let scope = |caller: &str| Scope {
            workspace: "w".into(),
            agent: "a".into(),
            caller: caller.into(),
        };
        let (alice, bob) = (scope("alice"), scope("bob"));
        let all = ListFilter::default();
        let some = ListFilter {
            context: Some("c".into()),
            ..ListFilter::default()
        };
        let tokens = |scope, filter| PageTokens {
            key: &[7; 32],
            scope,
            filter,
        };
        let key = PageKey {
            status_time: Timestamp::from_unix_ms(1_700_000_000_123),
            task: "t-1".into(),
        };
        let token = tokens(&alice, &all).seal(&key);
        assert_eq!(tokens(&alice, &all).open(&token), Some(key));
        assert_eq!(tokens(&bob, &all).open(&token), None);
        assert_eq!(tokens(&alice, &some).open(&token), None);
        for at in 0..token.len() {
            let mut altered = token.clone().into_bytes();
            altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            if altered != token {
                assert_eq!(tokens(&alice, &all).open(&altered), None, "{at}");
            }
        }
        assert_eq!(tokens(&alice, &all).open(""), None);
    }
}
