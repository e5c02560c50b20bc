//! The driver through its contract.

use occ_iam_native as _;

mod evaluation;
mod reading;
mod rig;
