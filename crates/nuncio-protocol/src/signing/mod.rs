//! Signing agent cards and verifying the signatures of others. Spec: §8.4
//!
//! A signature is a JWS with a detached payload: the card's canonical form, which is not sent but
//! made again by whoever verifies. [`canonical`] makes it, in the [`Form`]s that signers are known
//! to use; [`SigningKey`] signs the strict one; [`verify`] says which form a signature fits.
//!
//! Everything here works on JSON text as it came, since a typed card has forgotten which members
//! were there and empty. Keys come from the caller and nowhere else: what a card says about where
//! its keys are (`jku`) is not read (SIGN-08). The time comes from the caller, too; the random
//! numbers of keys and signatures come from the crypto library.

mod canonical;
mod encoding;
mod error;
mod key;
mod key_set;
mod schema;
mod sign;
mod token;
mod verify;

pub use canonical::{Form, canonical, normalized};
pub use error::SigningError;
pub use key::{Algorithm, SigningKey};
pub use key_set::{KeySet, VerifyingKey};
pub use sign::{Signed, warnings};
pub use verify::{Refusal, Verdict, Why, verify};
