//! What processes use, as `/proc` says it.

use std::{fs, time::Duration};

use crate::Error;

/// Ticks a second of the processor times in `/proc`; Linux has no other value for programs.
const TICKS: u32 = 100;

/// The processor time of a process and of those that it started and that still run.
pub(crate) fn processor(process: u32) -> Result<Duration, Error> {
    let mut ticks = stat(process).ok_or(Error::Usage)?.ticks;
    for entry in fs::read_dir("/proc").map_err(|_| Error::Usage)?.flatten() {
        let other = entry.file_name().to_str().and_then(|name| name.parse().ok());
        // One that ended meanwhile is not there.
        if let Some(other) = other.and_then(stat).filter(|other| other.parent == process) {
            ticks += other.ticks;
        }
    }
    Ok(Duration::from_secs(ticks) / TICKS)
}

struct Stat {
    parent: u32,
    ticks: u64,
}

fn stat(process: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in parentheses, may contain anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let time = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Stat {
        parent: fields.get(1)?.parse().ok()?,
        ticks: time(11)? + time(12)?,
    })
}

/// The most memory that this process has had resident since the last call, in bytes.
pub(crate) fn peak_memory() -> Result<u64, Error> {
    let status = fs::read_to_string("/proc/self/status").map_err(|_| Error::Usage)?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    // From here on it counts anew.
    fs::write("/proc/self/clear_refs", "5").map_err(|_| Error::Usage)?;
    peak.map(|kilobytes| kilobytes * 1024).ok_or(Error::Usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_computes_uses_the_processor() {
        let before = processor(std::process::id()).unwrap();
        let mut sum = 0_u64;
        while processor(std::process::id()).unwrap() == before {
            sum = (0..1_000_000).fold(sum, u64::wrapping_add);
        }
        assert!(processor(u32::MAX).is_err());
    }

    #[test]
    fn memory_that_was_given_back_is_not_counted_again() {
        peak_memory().unwrap();
        drop(std::hint::black_box(vec![1_u8; 64 << 20]));
        let with = peak_memory().unwrap();
        let without = peak_memory().unwrap();
        assert!(with > without + (32 << 20), "{with} {without}");
    }
}
