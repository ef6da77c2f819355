//! nuncio.
