//! The API as a client sees it: over real HTTP, in front of a whole control plane that runs nothing.

mod accounts;
mod admission;
mod agent_tokens;
mod codes;
mod conditions;
mod deployments;
mod garbage;
mod http;
mod impossible;
mod lists;
mod log;
mod named;
mod openapi;
mod people;
mod plugins;
mod privacy;
mod races;
mod refusals;
mod resources;
mod served;
mod sources;
mod unreadable;
mod waiting;
mod workspace;
