//! nuncio-runtime.
