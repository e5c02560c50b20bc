//! The last lines of a component's output, read from the end over rotated files.

use std::{
    collections::VecDeque,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use occ_core::driver::{Fault, FaultKind, LogQuery, RevisionRef};
use occ_runtime::spec::LaunchSpec;

use crate::{
    error::{Error, Result},
    naming,
    place::{Instance, find_revision},
    storage,
};

/// Longest line that is handed out, in bytes; the rest of it is cut.
const LINE_MAX_BYTES: usize = 16 * 1024;
/// Most that one call reads, in bytes, whatever the lines' length.
const READ_MAX_BYTES: usize = 8 * 1024 * 1024;
/// Most lines of one call (spec: Runtime logs).
const LINES_MAX: u16 = 1000;
const BLOCK_BYTES: usize = 64 * 1024;

/// The last lines of the version's component, or of its check when it was only checked.
pub(crate) fn read(instance: &Instance, target: &RevisionRef, query: &LogQuery) -> Result<Vec<String>> {
    let agent = instance.look(&target.agent)?;
    let revision = match &agent {
        Some(agent) => find_revision(agent, instance, target)?.map(|revision| (agent, revision)),
        None => None,
    };
    let (agent, revision) = revision.ok_or(Fault::new("find the version's logs", FaultKind::Missing))?;
    let lines = usize::from(query.lines.clamp(1, LINES_MAX));
    for run in [revision.serving(agent), revision.checking()] {
        let Ok(spec) = LaunchSpec::read(&run.spec) else {
            continue;
        };
        if query
            .component
            .as_ref()
            .is_some_and(|component| *component != spec.component)
        {
            return Err(Fault::new("find the component's logs", FaultKind::Missing).into());
        }
        let rotated = (1..=spec.log.keep).map(|number| naming::with_suffix(&run.log, &format!(".{number}")));
        let files: Vec<PathBuf> = std::iter::once(run.log.clone()).chain(rotated).collect();
        if let Some(lines) = tail(files.iter().map(PathBuf::as_path), lines)? {
            return Ok(lines);
        }
    }
    Ok(Vec::new())
}

/// The last `lines` of `files`, which are given newest first; the oldest line comes first. `None` when no file exists.
pub(crate) fn tail<'a>(files: impl Iterator<Item = &'a Path>, lines: usize) -> Result<Option<Vec<String>>> {
    let mut tail = Tail {
        wanted: lines,
        budget: READ_MAX_BYTES,
        lines: VecDeque::new(),
    };
    let mut found = false;
    for path in files {
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if storage::absent(&error) => continue,
            Err(error) => return Err(Error::storage("open a log")(error)),
        };
        found = true;
        tail.take(&mut file).map_err(Error::storage("read a log"))?;
        if tail.full() {
            break;
        }
    }
    Ok(found.then(|| tail.lines.into()))
}

struct Tail {
    wanted: usize,
    budget: usize,
    lines: VecDeque<String>,
}

impl Tail {
    fn full(&self) -> bool {
        self.lines.len() >= self.wanted || self.budget == 0
    }

    fn take(&mut self, file: &mut File) -> std::io::Result<()> {
        let mut end = file.seek(SeekFrom::End(0))?;
        let mut at_end = true;
        let empty = end == 0;
        let mut unfinished: Vec<u8> = Vec::new();
        while end > 0 && !self.full() {
            let size = BLOCK_BYTES
                .min(usize::try_from(end).unwrap_or(BLOCK_BYTES))
                .min(self.budget);
            self.budget -= size;
            end -= size as u64;
            let mut block = vec![0; size];
            file.seek(SeekFrom::Start(end))?;
            file.read_exact(&mut block)?;
            block.append(&mut unfinished);
            let mut rest = block.as_slice();
            while let Some(at) = rest.iter().rposition(|byte| *byte == b'\n') {
                let line = &rest[at + 1..];
                // Nothing follows the newline that ends the file.
                if !(line.is_empty() && at_end) {
                    self.push(line);
                }
                at_end = false;
                rest = &rest[..at];
                if self.full() {
                    return Ok(());
                }
            }
            // Only a line's beginning is handed out, so a longer one need not be kept whole.
            rest = &rest[..rest.len().min(LINE_MAX_BYTES + BLOCK_BYTES)];
            unfinished = rest.to_vec();
        }
        if end == 0 && !empty && !self.full() {
            self.push(&unfinished);
        }
        Ok(())
    }

    fn push(&mut self, line: &[u8]) {
        let cut = &line[..line.len().min(LINE_MAX_BYTES)];
        let mut text = String::from_utf8_lossy(cut).into_owned();
        // Replacement characters are longer than what they replace.
        while text.len() > LINE_MAX_BYTES {
            text.pop();
        }
        self.lines.push_front(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(contents: &[&[u8]], lines: usize) -> Option<Vec<String>> {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..contents.len()).map(|i| dir.path().join(i.to_string())).collect();
        for (path, content) in paths.iter().zip(contents) {
            std::fs::write(path, content).unwrap();
        }
        tail(paths.iter().map(PathBuf::as_path), lines).unwrap()
    }

    #[test]
    fn the_last_lines_come_oldest_first_and_over_rotated_files() {
        assert_eq!(
            read(&[b"c\nd\n", b"a\nb\n"], 3),
            Some(vec!["b".into(), "c".into(), "d".into()])
        );
        assert_eq!(read(&[b"c\nd\n", b"a\nb\n"], 1), Some(vec!["d".into()]));
        assert_eq!(read(&[b"a\n\nb"], 9), Some(vec!["a".into(), String::new(), "b".into()]));
        assert_eq!(
            read(&[b"\nb\n", b"a\n"], 9),
            Some(vec!["a".into(), String::new(), "b".into()])
        );
        assert_eq!(read(&[b""], 9), Some(vec![]));
        assert_eq!(read(&[], 9), None);
    }

    #[test]
    fn lines_that_cross_blocks_stay_whole() {
        let line = "x".repeat(1000);
        let content = format!("{line}\n").repeat(300);
        let lines = read(&[content.as_bytes()], 250).unwrap();
        assert_eq!(lines.len(), 250);
        assert!(lines.iter().all(|read| *read == line));
    }

    #[test]
    fn a_line_without_end_is_cut_and_bytes_that_are_no_text_are_replaced() {
        let long = vec![b'y'; 3 * BLOCK_BYTES];
        let lines = read(&[&[b"first\n", long.as_slice()].concat()], 2).unwrap();
        assert_eq!((lines[0].as_str(), lines[1].len()), ("first", LINE_MAX_BYTES));
        let lines = read(&[&vec![0xff; LINE_MAX_BYTES]], 1).unwrap();
        assert!(lines[0].len() <= LINE_MAX_BYTES);
    }
}
