//! The `occ-runtime` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    occ_runtime::cli::run(std::env::args_os())
}
