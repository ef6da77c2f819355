//! Reading the call tree of a task, which nuncio servers show beside the HTTP+JSON binding.

use nuncio_protocol::{
    A2aError, Binding, Call, ErrorKind, GetTaskRequest, Operation, OperationKind, Result, TaskId,
};
use serde_json::Value;

use crate::Client;
use crate::failure::bad_answer;

impl Client {
    /// The call tree of a task, as the server has written it; `content` says whether with what went
    /// into its steps and came out of them.
    ///
    /// One exchange, by the card's first interface of HTTP+JSON. Dropping the future is safe.
    ///
    /// # Errors
    /// UnsupportedOperation without such an interface, the agent's error, or one of the way there. A
    /// server without call trees takes the address for that of a task it does not know.
    pub async fn call_tree(&self, call: Call, id: &TaskId, content: bool) -> Result<Value> {
        let route = self.routes().find(|r| r.binding == Binding::HttpJson);
        let route = route.ok_or_else(|| {
            let message = "the card names no interface of HTTP+JSON, where call trees are";
            A2aError::new(ErrorKind::UnsupportedOperation, message)
        })?;
        let operation = Operation::GetTask(GetTaskRequest::new(id.clone()));
        let answer = self
            .exchange_once(&call, &operation, route, |url| {
                url.set_path(&format!("{}:trace", url.path()));
                if !content {
                    url.query_pairs_mut().append_pair("content", "false");
                }
            })
            .await?;
        if !answer.status.is_success() {
            let refused = route.sender.outcome(OperationKind::GetTask, &answer);
            return Err(refused.err().unwrap_or_else(A2aError::internal));
        }
        let tree: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let tree = tree.filter(|tree| tree["nodes"].is_array());
        tree.ok_or_else(|| bad_answer("the answer is no call tree"))
    }
}
