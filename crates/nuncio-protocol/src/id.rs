//! Identifiers as types of their own, so that two of them cannot be swapped.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Opaque text; cloning shares it. Empty means "not given".
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as it is; [`crate::Validate`] judges length and emptiness.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// The text on the wire.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether nothing was given.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self(Arc::from(""))
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Ok(Self(Arc::<str>::deserialize(deserializer)?))
            }
        }
    )+};
}

ids! {
    /// Names a task; made by the server, never by the client. Spec: §3.4.2
    TaskId,
    /// Names a conversation that several tasks may share. Spec: §3.4.1
    ContextId,
    /// Names a message; made by whoever sends it. Spec: §4.1.4
    MessageId,
    /// Names an artifact within its task. Spec: §4.1.7
    ArtifactId,
    /// Names a push notification config within its task. Spec: §4.3.1
    PushConfigId,
    /// Names an agent of this server, as in its address.
    AgentId,
    /// Names a workspace: the boundary no query crosses.
    WorkspaceId,
    /// Names who is calling, as the credential says. Spec: §13.1
    CallerId,
}
