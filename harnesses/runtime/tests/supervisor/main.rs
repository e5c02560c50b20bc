//! The supervisor's behaviour, seen from outside: its commands, files, processes and status.

mod kill;
mod launch;
mod log;
mod probe;
mod secret;
mod setup;
mod startup;
mod stop;
mod workload;
