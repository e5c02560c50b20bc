//! The server that all tests of a run share.
//!
//! Each test may be a process of its own. The first starts the server, and beside it a watcher that ends it once no test has held
//! its lock for a while.

use std::{
    fs::{self, File},
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::Cluster;

/// What the server need not do for tests that do not crash it.
const SETTINGS: [&str; 5] = [
    "fsync=off",
    "full_page_writes=off",
    "max_connections=300",
    "shared_buffers=64MB",
    "log_min_messages=fatal",
];

/// Ends the server by its data directory. `start` keeps new tests out meanwhile.
const WATCHER: &str = r#"
    idle=0
    while [ $idle -lt 4 ]; do
        sleep 5
        if flock -n -x "$1/users" true; then idle=$((idle + 1)); else idle=0; fi
        if [ $idle -eq 4 ]; then
            exec 9>"$1/start"
            flock -x 9
            if flock -n -x "$1/users" true; then
                kill -QUIT "$(head -n 1 "$1/cluster/data/postmaster.pid")"
                rm -rf "$1/cluster" "$1/port"
            else
                idle=0
            fi
            flock -u 9
        fi
    done
"#;

/// A server in use. It lives at least as long as this.
#[derive(Debug)]
pub struct Shared {
    base: String,
    _users: Option<File>,
}

impl Shared {
    /// The URL of one of its databases.
    pub fn url(&self, database: &str) -> String {
        self.base.replacen("{}", database, 1)
    }
}

/// The server of this run: the one of `DATABASE_URL`, or our own.
pub fn server() -> io::Result<Shared> {
    if let Ok(given) = std::env::var("DATABASE_URL") {
        let mut url = url::Url::parse(&given).map_err(|_| io::Error::other("DATABASE_URL is no URL"))?;
        url.set_path("/OCC_DATABASE");
        return Ok(Shared {
            base: url.as_str().replacen("OCC_DATABASE", "{}", 1),
            _users: None,
        });
    }
    let home = home()?;
    let start = File::create(home.join("start"))?;
    start.lock()?;
    let users = File::create(home.join("users"))?;
    users.lock_shared()?;
    let cluster = running(&home)?;
    Ok(Shared {
        base: cluster.url("{}"),
        _users: Some(users),
    })
}

/// One for each checkout: below the directory for temporary files, which another user may enter.
fn home() -> io::Result<PathBuf> {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).display().to_string();
    let name: String = checkout
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '-' })
        .collect();
    let home = std::env::temp_dir().join(format!("occ-postgres{name}"));
    fs::create_dir_all(&home)?;
    Ok(home)
}

fn running(home: &Path) -> io::Result<Cluster> {
    let (directory, port) = (home.join("cluster"), home.join("port"));
    if let Ok(Ok(known)) = fs::read_to_string(&port).map(|text| text.trim().parse()) {
        let cluster = Cluster::existing(&directory, known)?;
        if cluster.runs() {
            return Ok(cluster);
        }
    }
    // What an earlier run left behind that ended without its watcher.
    let _ = fs::remove_dir_all(&directory);
    let cluster = Cluster::create(&directory)?;
    cluster.start(&SETTINGS)?;
    fs::write(&port, cluster.port().to_string())?;
    // In a process group of its own: it outlives the test that started it.
    Command::new("bash")
        .args(["-c", WATCHER, "occ-postgres-watcher"])
        .arg(home)
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(cluster)
}
