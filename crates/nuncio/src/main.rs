//! The nuncio command.
fn main() {}
