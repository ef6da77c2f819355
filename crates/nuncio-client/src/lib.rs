//! nuncio-client.
