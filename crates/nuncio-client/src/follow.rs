//! Streams that outlive their connection: the public face of `resume`.

use nuncio_protocol::{
    A2aError, AgentService as _, Call, ErrorKind, EventStream, Result, SendMessageRequest, TaskId,
};

use crate::resume::{Following, Mode, cannot_stream};
use crate::{Client, reading};

impl Client {
    /// Sends a message and streams what comes of it until the task ends or pauses.
    ///
    /// A lost connection is taken up again with the position reached (`Last-Event-ID`), and with
    /// polls if the agent refuses that; events seen before are left out, and a whole `Task` in mid
    /// stream replaces what was known. An agent that does not stream is sent the message plainly
    /// and polled (BR-043). At AUTH_REQUIRED the stream goes on as long as the agent keeps it
    /// open. `call.timeout` limits the whole. Dropping the stream leaves the task running.
    ///
    /// # Errors
    /// What is refused before the first event. Later errors are the stream's last item and name
    /// the task ([`crate::task_id`]), so that [`Self::follow`] can take it up again.
    pub async fn stream(&self, call: Call, request: SendMessageRequest) -> Result<EventStream> {
        let mut following = Following::new(self, call);
        let opened = if self.streams() {
            let call = following.remaining()?;
            self.send_streaming_message(call, request.clone()).await
        } else {
            Err(A2aError::new(ErrorKind::UnsupportedOperation, ""))
        };
        match opened {
            Ok(stream) => following.mode = Mode::Reading(stream),
            Err(error) if cannot_stream(&error) => {
                let sent = self.send_message(following.remaining()?, without_waiting(request));
                following.take(reading::from_sent(sent.await?)?);
                following.mode = Mode::Poll;
            }
            Err(error) => return Err(error),
        }
        Ok(following.into_stream())
    }

    /// Streams a task as it is now, then every event until it ends or the agent closes at a pause.
    ///
    /// As robust as [`Self::stream`]; a task that has ended already is given as it is (BR-054).
    /// `call.last_event_id` is honoured.
    ///
    /// # Errors
    /// If the task cannot be read at all. Later errors are the stream's last item.
    pub async fn follow(&self, call: Call, task: impl Into<TaskId>) -> Result<EventStream> {
        let task = task.into();
        let mut following = Following::new(self, call);
        following.id = Some(task);
        following.mode = if self.streams() {
            Mode::Subscribe
        } else {
            Mode::Poll
        };
        while following.queue.is_empty() && following.is_looking() {
            following.step().await;
        }
        match following.queue.pop_front() {
            Some(Err(error)) => return Err(error),
            Some(first) => following.queue.push_front(first),
            None => {}
        }
        Ok(following.into_stream())
    }
}

impl Client {
    fn streams(&self) -> bool {
        self.can_stream() && self.follow_policy().streams
    }
}

/// The same request, to be answered before the task is done: polls do the waiting.
fn without_waiting(mut request: SendMessageRequest) -> SendMessageRequest {
    let mut configuration = request.configuration.take().unwrap_or_default();
    configuration.return_immediately = true;
    request.configuration = Some(configuration);
    request
}
