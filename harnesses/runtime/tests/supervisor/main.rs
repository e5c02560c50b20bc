//! The supervisor's behaviour, seen from outside: its commands, files, processes and status.

mod kill;
mod launch;
mod probe;
mod record;
mod secret;
mod setup;
mod startup;
mod stop;
mod workload;
