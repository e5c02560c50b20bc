//! The API as a client sees it: over real HTTP, in front of a whole control plane that runs nothing.

mod admission;
mod codes;
mod http;
mod served;
