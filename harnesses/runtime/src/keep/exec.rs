//! `occ-runtime exec`: what a command's process does before it becomes the command.
//!
//! A death signal can be set only by a process itself, and resource limits of the keeper must stay as they are. So the keeper
//! starts this program, and this program turns into the command.

use std::{
    env, fs, io,
    io::Write as _,
    os::{
        fd::AsFd as _,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    process::{Command, ExitCode, Stdio},
};

use rustix::process::{self, Resource, Rlimit, Signal};

use super::wire::Order;
use crate::spec::Limits;

/// Exit code of a command that could not be started; the keeper reads the reason from the socket.
const NOT_STARTED: u8 = 127;

/// Becomes the command, or answers the number of the error that prevented it.
pub fn run(keeper: u32) -> ExitCode {
    let Ok(control) = io::stdin().as_fd().try_clone_to_owned() else {
        return NOT_STARTED.into();
    };
    let mut control = UnixStream::from(control);
    let error = become_command(&control, keeper);
    let number = error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error());
    let _ = control.write_all(number.to_string().as_bytes());
    NOT_STARTED.into()
}

fn become_command(control: &UnixStream, keeper: u32) -> io::Error {
    match prepare(control, keeper) {
        Ok(mut command) => command.exec(),
        Err(error) => error,
    }
}

fn prepare(control: &UnixStream, keeper: u32) -> io::Result<Command> {
    process::set_parent_process_death_signal(Some(Signal::KILL))?;
    // A keeper that died before the line above sends no signal any more.
    if process::getppid().is_none_or(|pid| pid.as_raw_nonzero().get().cast_unsigned() != keeper) {
        return Err(rustix::io::Errno::SRCH.into());
    }
    let order = Order::read(control)?;
    limit(&order.limits)?;
    // Apart from the start itself, which would say of both that something is not found.
    env::set_current_dir(&order.working_directory).map_err(|_| rustix::io::Errno::NOTDIR)?;
    let (program, arguments) = order.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .envs(&order.environment)
        .stdin(Stdio::null());
    Ok(command)
}

fn limit(limits: &Limits) -> io::Result<()> {
    if let Some(cgroup) = &limits.cgroup {
        fs::write(format!("{cgroup}/cgroup.procs"), "0")?;
    }
    for (resource, wanted) in [
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, limits.processes),
        (Resource::Data, limits.memory_bytes),
    ] {
        if let Some(wanted) = wanted {
            // Nobody may raise a hard limit without a privilege: a higher wish means the present one.
            let allowed = process::getrlimit(resource)
                .maximum
                .map_or(wanted, |maximum| maximum.min(wanted));
            process::setrlimit(
                resource,
                Rlimit {
                    current: Some(allowed),
                    maximum: Some(allowed),
                },
            )?;
        }
    }
    Ok(())
}
