//! People who sign in: their sessions, and the accounts that administrators keep.

mod accounts;
mod browser;
mod leaks;
mod oidc;
mod proxies;
mod sessions;
mod sign_in;
