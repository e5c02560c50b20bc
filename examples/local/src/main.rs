//! The stock installation. A crate that is not named here is not linked, and its driver does not exist: to add a driver, add
//! its crate to Cargo.toml and a line below.

use occ_compute_process as _;
use occ_configuration_local as _;
use occ_harness_openclaw as _;
use occ_iam_native as _;
use occ_secret_local as _;

fn main() -> std::process::ExitCode {
    occ_cli::run()
}
