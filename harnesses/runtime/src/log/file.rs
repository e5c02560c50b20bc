//! A log file that is set aside when it has grown, and that never stops its writer.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use crate::spec::LogPolicy;

/// The file and how it is kept. A line that cannot be written is dropped and counted: a full disk must not stop a gateway.
pub struct LogFile {
    path: PathBuf,
    policy: LogPolicy,
    file: Option<BufWriter<File>>,
    size: u64,
    dropped: u64,
    unflushed: u64,
}

impl LogFile {
    /// Opens the file for appending. Only its owner may read it.
    pub fn open(path: &Path, policy: LogPolicy) -> io::Result<Self> {
        let (file, size) = append(path)?;
        Ok(Self {
            path: path.to_owned(),
            policy,
            file: Some(file),
            size,
            dropped: 0,
            unflushed: 0,
        })
    }

    /// Appends one line.
    pub fn write_line(&mut self, line: &[u8]) {
        let length = line.len() as u64 + 1;
        if self.size > 0 && self.size + length > self.policy.max_bytes {
            self.rotate();
        }
        if self.dropped > 0 && self.file.is_some() {
            let notice = format!("{{\"event\":\"runtime.log_dropped\",\"lines\":{}}}\n", self.dropped);
            let written = self
                .file
                .as_mut()
                .map(|file| file.write_all(notice.as_bytes()).and_then(|()| file.flush()));
            if matches!(written, Some(Ok(()))) {
                self.size += notice.len() as u64;
                self.dropped = 0;
            }
        }
        let written = match &mut self.file {
            Some(file) => file.write_all(line).and_then(|()| file.write_all(b"\n")),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match written {
            Ok(()) => {
                self.size += length;
                self.unflushed += 1;
            }
            Err(_) => self.lost(1),
        }
    }

    /// Hands what was written to the operating system.
    pub fn flush(&mut self) {
        match self.file.as_mut().map(BufWriter::flush) {
            Some(Ok(())) => self.unflushed = 0,
            Some(Err(_)) => self.lost(0),
            None => {}
        }
    }

    /// Gives up what is buffered, so that a disk with room again continues with whole lines.
    fn lost(&mut self, more: u64) {
        self.dropped += self.unflushed + more;
        self.unflushed = 0;
        if let Some(file) = self.file.take() {
            let _ = file.into_parts();
        }
        self.reopen();
    }

    fn reopen(&mut self) {
        if let Ok((file, size)) = append(&self.path) {
            self.file = Some(file);
            self.size = size;
        }
    }

    /// `FILE.1` becomes `FILE.2` and so on; the oldest goes.
    fn rotate(&mut self) {
        self.flush();
        self.file = None;
        let aside = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        let moved = if self.policy.keep == 0 {
            fs::remove_file(&self.path)
        } else {
            for number in (1..self.policy.keep).rev() {
                let _ = fs::rename(aside(number), aside(number + 1));
            }
            fs::rename(&self.path, aside(1))
        };
        if moved.is_err() {
            // It may not be set aside: better a short log than one without end.
            let _ = File::options()
                .write(true)
                .open(&self.path)
                .and_then(|file| file.set_len(0));
        }
        self.reopen();
    }
}

fn append(path: &Path) -> io::Result<(BufWriter<File>, u64)> {
    let file = File::options().create(true).append(true).mode(0o600).open(path)?;
    let size = file.metadata()?.len();
    Ok((BufWriter::new(file), size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_file_is_set_aside_and_the_oldest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = LogFile::open(&path, LogPolicy { max_bytes: 4, keep: 2 }).unwrap();
        for line in ["one", "two", "three", "four"] {
            log.write_line(line.as_bytes());
        }
        log.flush();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
        assert_eq!(read("log").as_deref(), Some("four\n"));
        assert_eq!(read("log.1").as_deref(), Some("three\n"));
        assert_eq!(read("log.2").as_deref(), Some("two\n"));
        assert_eq!(read("log.3"), None);
    }

    #[test]
    fn an_existing_file_is_continued_and_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "before\n").unwrap();
        let mut log = LogFile::open(&path, LogPolicy { max_bytes: 14, keep: 0 }).unwrap();
        log.write_line(b"after1");
        log.flush();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before\nafter1\n");
        log.write_line(b"x");
        log.flush();
        assert_eq!(fs::read_to_string(&path).unwrap(), "x\n");
    }

    #[test]
    fn lines_that_a_full_disk_refused_are_counted_and_said_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut log = LogFile::open(&path, LogPolicy::default()).unwrap();
        // A device that is always full stands for the disk; then there is room again.
        log.file = Some(BufWriter::new(File::options().write(true).open("/dev/full").unwrap()));
        log.write_line(b"lost");
        log.write_line(b"lost too");
        log.flush();
        log.write_line(b"kept");
        log.flush();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "{\"event\":\"runtime.log_dropped\",\"lines\":2}\nkept\n");
    }
}
