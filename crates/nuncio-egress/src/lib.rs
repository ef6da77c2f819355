//! The only door out: one guarded HTTP client for cards, webhooks, keys, files and remote agents.
//!
//! Every request passes [`Egress::send`]. Its URL is judged first (scheme, user information, port,
//! literal addresses, names of the local host); then the addresses its name resolves to are judged
//! inside the connector, and only a judged address is ever dialled, so that a name cannot change
//! its mind between check and use. Redirects are answers like any other and are never followed; no
//! proxy is used unless the policy names one. What a request says is left to others; what went over
//! the wire can be watched in the log (target `nuncio::wire`, level TRACE).

mod address;
mod egress;
mod error;
mod policy;
mod proxy;
mod request;
mod resolve;
mod response;
mod target;
mod wire;

pub use egress::Egress;
pub use error::{EgressError, Limit, Refusal, Rule};
pub use ipnet::IpNet;
pub use policy::EgressPolicy;
pub use proxy::ProxyPolicy;
pub use request::{EgressRequest, Timeouts};
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use response::EgressResponse;
