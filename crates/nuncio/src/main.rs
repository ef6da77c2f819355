//! `nuncio`: serve agents, and call them.

use std::process::ExitCode;

fn main() -> ExitCode {
    nuncio::run(std::env::args_os())
}
