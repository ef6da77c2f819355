//! The protobuf messages, made from `proto/` by `cargo xtask generate`.

/// `lf.a2a.v1`: protocol 1.0.
pub(super) mod lf_a2a_v1 {
    include!("lf.a2a.v1.rs");
}

/// `a2a.v1`: protocol 0.3.
pub(super) mod a2a_v1 {
    include!("a2a.v1.rs");
}

/// `google.rpc`: errors.
pub(super) mod google_rpc {
    include!("google.rpc.rs");
}
