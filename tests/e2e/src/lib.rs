//! What the end-to-end tests share: a user's home with the real binaries, and eyes for processes and secrets.
//!
//! Everything is done through the `occ` command, as a user does it. The binaries are found beside the tests' own:
//! `./test e2e` builds them first.

mod canary;
mod draft;
mod home;
mod model;
mod patience;
mod processes;
mod up;

pub use canary::{Find, find};
pub use draft::{Draft, document, id};
pub use home::{Home, Ran, binary};
pub use model::Model;
pub use patience::{BOUND, eventually, within};
pub use processes::{Process, processes};
pub use up::Up;
