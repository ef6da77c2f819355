//! nuncio-server.
