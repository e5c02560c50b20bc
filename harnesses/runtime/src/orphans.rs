//! Processes of a tree whose supervisor and keeper were both killed.
//!
//! The kernel kills the component with its keeper, but nothing that the component started in a session of its own. Each process
//! of a tree carries the tree's lock in its environment, and can be found by it as long as it did not drop it on purpose.

use std::{
    fs::{self, File},
    io,
    os::unix::ffi::OsStrExt as _,
    path::Path,
};

use zeroize::Zeroizing;

use crate::identity::ProcessIdentity;

/// The variable that names the tree's lock to each process of the tree.
pub const MARK: &str = "OCC_TREE";
/// So much of an environment is looked at at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// Every living process that carries this tree's lock. Those of other users are not seen.
pub fn find(tree_lock: &Path) -> Vec<ProcessIdentity> {
    let mark = [b"\0", MARK.as_bytes(), b"=", tree_lock.as_os_str().as_bytes(), b"\0"].concat();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let numbers = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.filter_map(|pid| marked(pid, &mark)).collect()
}

fn marked(pid: u32, mark: &[u8]) -> Option<ProcessIdentity> {
    // Taken first: when another process gets the number meanwhile, the identity is no longer alive.
    let identity = ProcessIdentity::of(pid).ok()?;
    let carried = holds(File::open(format!("/proc/{pid}/environ")).ok()?, mark).ok()?;
    (carried && identity.is_alive()).then_some(identity)
}

/// Whether the environment has this variable, which is given with the zeros around it. Other variables are secrets: what was read
/// is overwritten.
fn holds(mut environment: impl io::Read, mark: &[u8]) -> io::Result<bool> {
    let mut buffer = Zeroizing::new(vec![0; mark.len() + CHUNK]);
    // A zero, as before every variable but the first.
    let mut kept = 1;
    loop {
        let read = environment.read(&mut buffer[kept..])?;
        if read == 0 {
            return Ok(false);
        }
        let filled = kept + read;
        if buffer[..filled].windows(mark.len()).any(|window| window == mark) {
            return Ok(true);
        }
        kept = filled.min(mark.len() - 1);
        buffer.copy_within(filled - kept..filled, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &[u8] = b"\0OCC_TREE=/a/lock\0";

    #[test]
    fn a_variable_is_found_wherever_it_stands() {
        let far = vec![b'x'; CHUNK - 20];
        for (environment, held) in [
            (&b""[..], false),
            (b"OCC_TREE=/a/lock\0", true),
            (b"A=1\0OCC_TREE=/a/lock\0B=2\0", true),
            (b"A=1\0OCC_TREE=/a/lock.d\0", false),
            (b"NOT_OCC_TREE=/a/lock\0", false),
            (&[&far[..], b"\0OCC_TREE=/a/lock\0"].concat(), true),
            (&[&far[..], &far[..], b"\0OCC_TREE=/a/lock\0", &far[..]].concat(), true),
        ] {
            assert_eq!(holds(environment, MARK).unwrap(), held);
            // In the smallest pieces.
            assert_eq!(holds(Pieces(environment), MARK).unwrap(), held);
        }
    }

    struct Pieces<'a>(&'a [u8]);

    impl io::Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(1);
            self.0.read(&mut buffer[..length])
        }
    }
}
