//! People who sign in: their sessions, and the accounts that administrators keep.

mod accounts;
pub mod browser;
mod leaks;
pub mod oidc;
mod proxies;
mod sessions;
mod sign_in;
