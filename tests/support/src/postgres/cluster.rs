//! One server in a directory of its own, on the loopback interface.

use std::{
    fs,
    io::{self, Error},
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// The user below whose name Debian's root runs it: the server refuses to be root.
const NOBODY: (&str, u32, u32) = ("nobody", 65534, 65534);

/// A server's directory and port. Nothing ends it but [`Cluster::stop`].
#[derive(Debug, Clone)]
pub struct Cluster {
    bin: PathBuf,
    directory: PathBuf,
    port: u16,
}

impl Cluster {
    /// Makes an empty cluster in a directory, which is created, and picks a free port.
    pub fn create(directory: &Path) -> io::Result<Self> {
        let bin = super::binaries().ok_or_else(|| Error::other("there is no PostgreSQL"))?;
        fs::create_dir_all(directory)?;
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let cluster = Self {
            bin,
            directory: directory.to_owned(),
            port,
        };
        if root() {
            chown(directory, Some(NOBODY.1), Some(NOBODY.2))?;
        }
        let data = cluster.data();
        let data = data.to_str().ok_or_else(|| Error::other("the path is not a text"))?;
        cluster.run(
            "initdb",
            &["-D", data, "-U", "occ", "-A", "trust", "-E", "UTF8", "--no-sync"],
        )?;
        Ok(cluster)
    }

    /// A cluster that another process made.
    pub fn existing(directory: &Path, port: u16) -> io::Result<Self> {
        let bin = super::binaries().ok_or_else(|| Error::other("there is no PostgreSQL"))?;
        Ok(Self {
            bin,
            directory: directory.to_owned(),
            port,
        })
    }

    /// The id of the server's first process, while it runs.
    pub fn process(&self) -> Option<u32> {
        let written = std::fs::read_to_string(self.data().join("postmaster.pid")).ok()?;
        written.lines().next()?.trim().parse().ok()
    }

    /// Starts the server with these settings, `name=value`, and waits until it answers.
    pub fn start(&self, settings: &[&str]) -> io::Result<()> {
        let directory = self.directory.display();
        let mut options = format!(
            "-c listen_addresses=127.0.0.1 -p {} -c unix_socket_directories={directory}",
            self.port
        );
        for setting in settings {
            options.push_str(" -c ");
            options.push_str(setting);
        }
        let (data, log) = (self.data(), self.directory.join("log"));
        let paths = (data.to_str(), log.to_str());
        let (Some(data), Some(log)) = paths else {
            return Err(Error::other("the path is not a text"));
        };
        self.run(
            "pg_ctl",
            &["-D", data, "-w", "-t", "60", "-l", log, "-o", &options, "start"],
        )
    }

    /// Stops it: `smart`, `fast`, or `immediate`, which is as if it had crashed.
    pub fn stop(&self, mode: &str) -> io::Result<()> {
        let data = self.data();
        let data = data.to_str().ok_or_else(|| Error::other("the path is not a text"))?;
        self.run("pg_ctl", &["-D", data, "-w", "-t", "60", "-m", mode, "stop"])
    }

    /// Whether its server answers.
    pub fn runs(&self) -> bool {
        std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    /// Its port on the loopback interface.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The URL of one of its databases.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://occ@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<()> {
        let program = self.bin.join(program);
        let mut command = if root() {
            let mut command = Command::new("runuser");
            command.args(["-u", NOBODY.0, "--"]).arg(&program);
            command
        } else {
            Command::new(&program)
        };
        // The server keeps what it inherits: a pipe would never end.
        let said = command
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        if said.success() {
            Ok(())
        } else {
            let log = self.directory.join("log");
            Err(Error::other(format!(
                "{} failed; see {}",
                program.display(),
                log.display()
            )))
        }
    }
}

fn root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|metadata| std::os::unix::fs::MetadataExt::uid(&metadata) == 0)
}
