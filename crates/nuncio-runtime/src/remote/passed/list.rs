//! Listing the tasks that an agent elsewhere has for one of our callers.

use nuncio_protocol::{
    A2aError, AgentService as _, Call, ListTasksRequest, ListTasksResponse, Result, TaskId,
};

use super::PassThrough;

/// Tasks of a page if the caller does not say.
const DEFAULT_PAGE: i32 = 50;
/// How often the agent is asked for one page here: what it has for others is passed over.
const MAX_REQUESTS: usize = 10;
/// The longest page token, in bytes.
const MAX_TOKEN_BYTES: usize = 4_096;

impl PassThrough {
    pub(super) async fn list(
        &self,
        call: Call,
        mut request: ListTasksRequest,
    ) -> Result<ListTasksResponse> {
        request.tenant = None;
        let token = request.page_token.as_deref().unwrap_or_default();
        if token.len() > MAX_TOKEN_BYTES {
            let why = format!("is longer than {MAX_TOKEN_BYTES} bytes");
            return Err(A2aError::invalid_field("pageToken", why));
        }
        let from_the_first = token.is_empty();
        let mut page = ListTasksResponse::default();
        page.page_size = request.page_size.unwrap_or(DEFAULT_PAGE);
        page.artifacts_included = request.include_artifacts.unwrap_or_default();
        if let Some(context) = &request.context_id
            && !self.passing.has_context(&call, context).await?
        {
            return Ok(page);
        }
        self.fill(&call, request, &mut page).await?;
        let all = from_the_first && page.next_page_token.is_empty();
        let total = match all {
            true => page.tasks.len() as u64,
            false => self.passing.count_tasks(&call).await?,
        };
        page.total_size = i32::try_from(total).unwrap_or(i32::MAX);
        Ok(page)
    }

    /// Asks for as many tasks as are missing, until there are enough or the agent has been asked often.
    async fn fill(
        &self,
        call: &Call,
        mut request: ListTasksRequest,
        page: &mut ListTasksResponse,
    ) -> Result<()> {
        let client = self.client().await?;
        for _ in 0..MAX_REQUESTS {
            let there = i32::try_from(page.tasks.len()).unwrap_or(i32::MAX);
            request.page_size = Some(page.page_size.saturating_sub(there));
            let listed = client.list_tasks(call.clone(), request.clone()).await;
            let listed = listed.map_err(|error| self.told(error))?;
            let ids: Vec<TaskId> = listed.tasks.iter().map(|task| task.id.clone()).collect();
            let own = self.passing.tasks(call, &ids).await?;
            let tasks = listed.tasks.into_iter();
            page.tasks
                .extend(tasks.filter(|task| own.contains(&task.id)));
            page.next_page_token = listed.next_page_token;
            let full = page.tasks.len() as i64 >= i64::from(page.page_size);
            if full || page.next_page_token.is_empty() {
                break;
            }
            request.page_token = Some(page.next_page_token.clone());
        }
        Ok(())
    }
}
