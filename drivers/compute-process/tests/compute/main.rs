//! Process Compute through its public contract, with the real supervisor and a small real component.

mod access;
mod deploy;
mod ownership;
mod replace;
mod scene;
mod stop;
mod storage;
mod workspace;
