//! nuncio-engine.
