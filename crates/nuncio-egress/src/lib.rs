//! nuncio-egress.
