//! The data directory: 0700, one owner a role, files that appear whole or not at all.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use occ_core::{id::RequestId, resource::PrincipalId, secret_value::SecretValue};

use rustix::fs::statvfs;

use crate::exit::{Done, Failure};

/// Less free space than this, and a failed write needs no other explanation.
const SPACE_MIN_BYTES: u64 = 1024 * 1024;

/// What a process does with a data directory. Each role has one owner at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Answers the API.
    Api,
    /// Drives work.
    Worker,
}

impl Role {
    const fn file(self) -> &'static str {
        match self {
            Self::Api => "api.lock",
            Self::Worker => "worker.lock",
        }
    }
}

/// A held role; freed when dropped, and by the operating system when the process dies.
#[derive(Debug)]
pub(crate) struct DirLock {
    _file: File,
}

/// A control plane's directory on this host.
#[derive(Debug, Clone)]
pub(crate) struct DataDir {
    root: PathBuf,
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Failure {
    let reason = match error.kind() {
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "no space left: free some and start again".to_owned()
        }
        io::ErrorKind::NotFound => "it does not exist".to_owned(),
        io::ErrorKind::NotADirectory => "something on the way is not a directory".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        kind => kind.to_string(),
    };
    Failure::startup(format!("cannot {what} {}: {reason}", path.display()))
}

impl DataDir {
    /// The embedded database's file.
    pub(crate) const DATABASE: &str = "occ.db";

    /// `$XDG_DATA_HOME/occ`, or `~/.local/share/occ`.
    pub(crate) fn default_path() -> Done<PathBuf> {
        base("XDG_DATA_HOME", ".local/share").map(|base| base.join("occ"))
    }

    /// `$XDG_STATE_HOME/occ/quickstart`, or below `~/.local/state`.
    pub(crate) fn quickstart_path() -> Done<PathBuf> {
        base("XDG_STATE_HOME", ".local/state").map(|base| base.join("occ/quickstart"))
    }

    /// The directory at `root`, created when it is missing.
    pub(crate) fn open(root: &Path) -> Done<Self> {
        let root = std::path::absolute(root).map_err(|error| failed("find", root, &error))?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&root)
            .map_err(|error| failed("create the data directory", &root, &error))?;
        let metadata = fs::metadata(&root).map_err(|error| failed("read", &root, &error))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(Failure::startup(format!(
                "the data directory {path} is open to others: it holds keys and credentials; run `chmod 700 {path}`",
                path = root.display()
            )));
        }
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.root.join(Self::DATABASE)
    }

    pub(crate) fn installation(&self) -> PathBuf {
        self.root.join("installation.yaml")
    }

    pub(crate) fn drivers(&self) -> PathBuf {
        self.root.join("drivers")
    }

    pub(crate) fn admin_key(&self) -> PathBuf {
        self.root.join("admin.key")
    }

    fn administrator_file(&self) -> PathBuf {
        self.root.join("administrator")
    }

    fn pending_file(&self) -> PathBuf {
        self.root.join("bootstrap.pending")
    }

    /// Waits until no other process sets this directory up: an API and a worker may start together.
    pub(crate) fn lock_set_up(&self) -> Done<DirLock> {
        let path = self.root.join("set-up.lock");
        let file = lock_file(&path)?;
        file.lock().map_err(|error| failed("lock", &path, &error))?;
        Ok(DirLock { _file: file })
    }

    /// Whether hardly any space is left.
    pub(crate) fn is_full(&self) -> bool {
        statvfs(&self.root).is_ok_and(|found| found.f_bavail.saturating_mul(found.f_frsize) < SPACE_MIN_BYTES)
    }

    /// What to say then.
    pub(crate) fn full(&self) -> Failure {
        failed("write below", &self.root, &io::ErrorKind::StorageFull.into())
    }

    /// Takes a role, or says who has it.
    pub(crate) fn lock(&self, role: Role) -> Done<DirLock> {
        let path = self.root.join(role.file());
        let mut file = lock_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut owner = String::new();
                let _ = file.read_to_string(&mut owner);
                let owner = owner.trim();
                let who = if owner.is_empty() {
                    "another process".to_owned()
                } else {
                    format!("process {owner}")
                };
                return Err(Failure::startup(format!(
                    "{who} already runs a control plane on {}: stop it, or choose another --data-dir",
                    self.root.display()
                )));
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|error| failed("write", &path, &error))?;
        Ok(DirLock { _file: file })
    }

    pub(crate) fn write_installation(&self, text: &str) -> Done {
        self.write(&self.installation(), text.as_bytes())
    }

    /// Whether a first start came to its end here: what it made is not made again.
    pub(crate) fn was_set_up(&self) -> bool {
        self.administrator_file().exists() && !self.bootstrap_pending()
    }

    /// What to say when the database of such a directory is gone.
    pub(crate) fn database_gone(&self) -> Failure {
        Failure::startup(format!(
            "{} was set up before, and its database is gone or empty: restore it from a backup, or name another --data-dir; \
             Agents that it knew may still be running",
            self.root.display()
        ))
    }

    /// Whether a first start began and its key may not have reached the disk.
    pub(crate) fn bootstrap_pending(&self) -> bool {
        self.pending_file().exists()
    }

    pub(crate) fn mark_bootstrap(&self) -> Done {
        self.write(&self.pending_file(), b"the first start has not finished\n")
    }

    pub(crate) fn clear_bootstrap(&self) -> Done {
        let path = self.pending_file();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", &path, &error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn write_administrator(&self, principal: &PrincipalId) -> Done {
        self.write(&self.administrator_file(), format!("{principal}\n").as_bytes())
    }

    pub(crate) fn administrator(&self) -> Done<PrincipalId> {
        let path = self.administrator_file();
        let text = fs::read_to_string(&path).map_err(|error| failed("read", &path, &error))?;
        text.trim()
            .parse()
            .map_err(|_| Failure::startup(format!("{} names no principal", path.display())))
    }

    pub(crate) fn write_admin_key(&self, key: &SecretValue) -> Done {
        let mut line = key.expose().to_vec();
        line.push(b'\n');
        self.write(&self.admin_key(), &line)
    }

    pub(crate) fn stand_in_key_file(&self) -> PathBuf {
        self.root.join("stand-in.key")
    }

    /// The key that the quickstart's stand-in for a model provider takes; made once.
    pub(crate) fn stand_in_key(&self) -> Done<SecretValue> {
        let path = self.stand_in_key_file();
        if !path.exists() {
            // Two random ids: more than enough for a server that listens on loopback.
            let key = format!(
                "sk-{}{}\n",
                RequestId::random().uuid().simple(),
                RequestId::random().uuid().simple()
            );
            self.write(&path, key.as_bytes())?;
        }
        super::read_key(&path)
    }

    /// Writes a file of the owner's alone, whole or not at all.
    fn write(&self, path: &Path, bytes: &[u8]) -> Done {
        let temporary = path.with_extension("new");
        let written = (|| {
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, path)?;
            File::open(&self.root)?.sync_all()
        })();
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            failed("write", path, &error)
        })
    }
}

/// A file to lock. It stays: removing it would let two processes lock two files of one name.
fn lock_file(path: &Path) -> Done<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| failed("open", path, &error))
}

fn base(variable: &str, below_home: &str) -> Done<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute(variable)
        .or_else(|| absolute("HOME").map(|home| home.join(below_home)))
        .ok_or_else(|| Failure::usage("neither HOME nor a --data-dir says where to keep data"))
}
