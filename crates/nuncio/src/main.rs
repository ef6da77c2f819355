//! `nuncio`: serve agents, and call them.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    nuncio::run(std::env::args_os())
}
