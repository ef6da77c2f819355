//! Agent cards: finding one and reading it leniently. Spec: §8

mod cache;
mod discovery;
mod places;
mod read;
mod signature;
mod tries;

pub use cache::CardCache;
pub(crate) use discovery::discover_with;
pub use discovery::{Discovered, discover};
pub(crate) use places::parse;
pub use read::read;
pub(crate) use signature::SignatureCheck;
pub use signature::{SignatureError, SignaturePolicy};
pub use tries::{DiscoveryError, Try, TryOutcome};
