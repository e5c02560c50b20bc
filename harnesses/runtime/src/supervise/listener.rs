//! Whose socket a port is. An answer on the right port may be another program's, as when the component could not bind.

use std::{fs, path::Path};

use crate::tree;

/// Whether a process below this one listens on the port; `None` when that cannot be seen.
pub fn is_ours(port: u16) -> Option<bool> {
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines());
    let sockets: Vec<String> = lines
        .filter_map(|line| listening(line, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        // Somebody answered, so there is a listener: it is in another network namespace, or the tables are hidden.
        return None;
    }
    let mut seen_all = true;
    for process in tree::descendants() {
        let directory = format!("/proc/{}/fd", process.pid);
        match fs::read_dir(&directory) {
            Ok(descriptors) => {
                let mut targets = descriptors
                    .flatten()
                    .filter_map(|entry| fs::read_link(entry.path()).ok());
                if targets.any(|target| sockets.iter().any(|socket| target == Path::new(socket))) {
                    return Some(true);
                }
            }
            // One that has just ended holds nothing.
            Err(_) => seen_all &= !Path::new(&directory).exists(),
        }
    }
    seen_all.then_some(false)
}

/// The inode of a line's socket, when it listens on this port.
fn listening(line: &str, port: u16) -> Option<&str> {
    let mut fields = line.split_ascii_whitespace();
    let local = fields.nth(1)?;
    let (state, inode) = (fields.nth(1)?, fields.nth(5)?);
    let found = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    (state == "0A" && found == port).then_some(inode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_line_names_its_socket() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 77777 1 0 100 0 0 10 0";
        assert_eq!(listening(line, 8080), Some("77777"));
        assert_eq!(listening(line, 8081), None);
        assert_eq!(listening(&line.replace(" 0A ", " 01 "), 8080), None);
        assert_eq!(listening("  sl  local_address rem_address   st", 8080), None);
    }
}
