//! Looking for secrets where none may be.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// A place that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    /// The file.
    pub file: PathBuf,
    /// Which of the wanted texts, by its index.
    pub index: usize,
    /// The file's permissions.
    pub mode: u32,
}

/// Every file below `root` that holds one of these texts.
///
/// # Panics
/// When a text is too short to mean anything.
pub fn find(root: &Path, texts: &[String]) -> Vec<Find> {
    assert!(
        texts.iter().all(|text| text.len() >= 16),
        "a canary is long enough to be found by no accident"
    );
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                continue;
            };
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() {
                let bytes = fs::read(&path).unwrap_or_default();
                let mode = metadata.permissions().mode() & 0o777;
                found.extend(held(&bytes, texts).map(|index| Find {
                    file: path.clone(),
                    index,
                    mode,
                }));
            }
        }
    }
    found
}

/// Which of these texts the bytes hold.
fn held<'a>(bytes: &'a [u8], texts: &'a [String]) -> impl Iterator<Item = usize> + 'a {
    let holds = move |text: &String| {
        let text = text.as_bytes();
        // The first byte is searched for quickly; the rest seldom.
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == text[0]) {
            if rest[at..].starts_with(text) {
                return true;
            }
            rest = &rest[at + 1..];
        }
        false
    };
    (0..texts.len()).filter(move |index| holds(&texts[*index]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_is_found_wherever_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let canary = "canary-0123456789abcdef".to_owned();
        let deep = dir.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("held"), format!("cc\0\u{1}x{canary}y")).unwrap();
        fs::write(deep.join("whole"), &canary).unwrap();
        fs::write(deep.join("near"), &canary[..canary.len() - 1]).unwrap();
        let found = find(dir.path(), &["another-0123456789".to_owned(), canary]);
        let mut files: Vec<_> = found.iter().map(|find| (find.file.clone(), find.index)).collect();
        files.sort();
        assert_eq!(files, [(deep.join("held"), 1), (deep.join("whole"), 1)]);
    }
}
