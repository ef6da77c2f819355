//! The way to a remote agent: found once, looked at again in the background.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use nuncio_client::{Client, ClientBuilder};
use nuncio_protocol::AgentCard;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long a card is taken for true before it is read again.
const LIFETIME: Duration = Duration::from_secs(300);

/// How a remote agent is reached.
pub(super) struct Connection {
    /// Where its card is, if it is not at hand.
    place: Option<(ClientBuilder, String)>,
    first: OnceCell<()>,
    known: Mutex<Option<Known>>,
}

struct Known {
    client: Client,
    /// When it is to be looked at again; never while somebody does.
    stale: Option<Instant>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.place.as_ref().map(|(_, url)| url.split('?').next());
        f.debug_struct("Connection")
            .field("url", &url)
            .finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn to(client: ClientBuilder, url: String) -> Self {
        Self {
            place: Some((client, url)),
            first: OnceCell::new(),
            known: Mutex::new(None),
        }
    }

    pub(super) fn with(client: Client) -> Self {
        Self {
            place: None,
            first: OnceCell::new_with(Some(())),
            known: Mutex::new(Some(Known {
                client,
                stale: None,
            })),
        }
    }

    pub(super) fn set(&self, client: Client) {
        *self.known.lock() = Some(Known {
            client,
            stale: self.place.as_ref().map(|_| Instant::now() + LIFETIME),
        });
        let _ = self.first.set(());
    }

    /// The way as it is known; the first caller finds it, and those at the same time wait for it.
    pub(super) async fn client(self: &Arc<Self>) -> Result<Client, String> {
        let found = self.first.get_or_try_init(|| self.find());
        found.await?;
        let client = {
            let mut known = self.known.lock();
            let known = known.as_mut().ok_or("its card is not known")?;
            if known.stale.is_some_and(|stale| stale <= Instant::now()) {
                known.stale = None;
                tokio::spawn(Arc::clone(self).look_again());
            }
            known.client.clone()
        };
        Ok(client)
    }

    /// The card as it was read last, if it was.
    pub(super) fn card(&self) -> Option<AgentCard> {
        let known = self.known.lock();
        known.as_ref().map(|known| known.client.card().clone())
    }

    async fn find(&self) -> Result<(), String> {
        let Some((client, url)) = &self.place else {
            return Ok(());
        };
        let found = client.clone().connect(url).await;
        let client = found.map_err(|error| error.to_string())?;
        *self.known.lock() = Some(Known {
            client,
            stale: Some(Instant::now() + LIFETIME),
        });
        Ok(())
    }

    /// What was known is used further if the card cannot be read now.
    async fn look_again(self: Arc<Self>) {
        if let Err(error) = self.find().await {
            tracing::warn!(%error, "the card of a remote agent is not read again");
            if let Some(known) = self.known.lock().as_mut() {
                known.stale = Some(Instant::now() + LIFETIME);
            }
        }
    }
}
