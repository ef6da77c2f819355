//! nuncio-testkit.
