//! The control plane's operations over the embedded drivers and a database in memory, with a Compute that runs nothing.
#![cfg(feature = "sqlite")]

mod accounts;
mod agents;
mod authority;
mod configurations;
mod credentials;
mod deployments;
mod installation;
mod installation_policy;
mod lifecycle;
mod namespaces;
mod people;
mod plugins;
mod policy;
mod queue;
mod refusals;
mod runtime;
mod secrets;
mod sources;
