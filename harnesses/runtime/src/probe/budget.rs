//! How long a check may take, and whether it starved (spec/drivers 7.1).

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::tree;

/// Longest check.
const MAX_CAP: Duration = Duration::from_mins(10);

/// Wall time for a check: the base and its CPU time at the speed that the quota allows.
pub fn cap(base_ms: u64, cpu_ms: u64, quota: Option<f64>) -> Duration {
    // Above one CPU a check is not quicker, and a quota of almost nothing must not overflow.
    let quota = quota.map_or(1.0, |quota| quota.clamp(0.001, 1.0));
    let cpu = Duration::from_millis(cpu_ms).min(MAX_CAP).div_f64(quota);
    Duration::from_millis(base_ms).saturating_add(cpu).min(MAX_CAP)
}

/// The cgroup v2 directories that a check's processes run in, the innermost first. Empty where there is no such hierarchy.
pub struct Cgroup(Vec<PathBuf>);

impl Cgroup {
    /// The cgroup that the spec names, or else this process's own.
    pub fn find(named: Option<&str>) -> Self {
        if let Some(path) = named {
            return Self::upwards(Path::new(path), Path::new("/sys/fs/cgroup"));
        }
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let Some(own) = own.lines().find_map(|line| line.strip_prefix("0::/")) else {
            return Self(Vec::new());
        };
        let roots = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
        let root = roots.into_iter().find(|root| root.join("cgroup.controllers").exists());
        root.map_or(Self(Vec::new()), |root| Self::upwards(&root.join(own), root))
    }

    fn upwards(path: &Path, root: &Path) -> Self {
        Self(
            path.ancestors()
                .take_while(|path| path.starts_with(root))
                .map(Path::to_owned)
                .collect(),
        )
    }

    /// CPUs that may be used: the smallest quota on the way up; `None` without one.
    pub fn quota(&self) -> Option<f64> {
        let quotas = self.0.iter().filter_map(|path| {
            let text = fs::read_to_string(path.join("cpu.max")).ok()?;
            let (quota, period) = text.trim().split_once(' ')?;
            let (quota, period) = (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?);
            (period > 0.0).then_some(quota / period)
        });
        quotas.reduce(f64::min)
    }

    /// Begins to watch how long processes wait for a CPU.
    pub fn begin(&self) -> Waiting<'_> {
        Waiting {
            cgroup: self,
            before: self.waited(),
        }
    }

    fn waited(&self) -> Option<Duration> {
        // The root of all cgroups has no type: what waits there is the whole machine, and says nothing of a check.
        let innermost = self.0.first().filter(|path| path.join("cgroup.type").exists());
        let read = |name: &str| fs::read_to_string(innermost?.join(name)).ok();
        let field = |text: &str, line: &str, name: &str| {
            let line = text.lines().find(|found| found.starts_with(line))?;
            let value = line
                .split_ascii_whitespace()
                .find_map(|word| word.strip_prefix(name).map(str::to_owned))?;
            value.parse().ok().map(Duration::from_micros)
        };
        let pressure = read("cpu.pressure").and_then(|text| field(&text, "some ", "total="));
        pressure.or_else(|| {
            let text = read("cpu.stat")?;
            let line = text.lines().find_map(|line| line.strip_prefix("throttled_usec "))?;
            line.trim().parse().ok().map(Duration::from_micros)
        })
    }
}

/// A watch that has begun.
pub struct Waiting<'a> {
    cgroup: &'a Cgroup,
    before: Option<Duration>,
}

impl Waiting<'_> {
    /// How long the check waited for a CPU: the first thread of the process that waited longest, throttling included. A kernel
    /// that does not count that may count it for the cgroup.
    pub fn since(&self) -> Option<Duration> {
        let own = tree::descendants()
            .iter()
            .filter_map(|process| run_delay(process.pid))
            .max();
        own.or_else(|| self.in_cgroup())
    }

    fn in_cgroup(&self) -> Option<Duration> {
        Some(self.cgroup.waited()?.saturating_sub(self.before?))
    }
}

/// How long a process's first thread was ready and did not run (`/proc/PID/schedstat`, second field).
fn run_delay(pid: u32) -> Option<Duration> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    let (ran, waited): (u64, u64) = (fields.next()?.ok()?, fields.next()?.ok()?);
    // A thread that is here has run; a kernel that says otherwise does not count.
    (ran > 0).then_some(Duration::from_nanos(waited))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_stretches_the_cpu_time_up_to_ten_minutes() {
        let secs = Duration::from_secs;
        assert_eq!(cap(20_000, 45_000, None), secs(65));
        assert_eq!(cap(20_000, 45_000, Some(4.0)), secs(65));
        assert_eq!(cap(20_000, 45_000, Some(0.5)), secs(110));
        assert_eq!(cap(20_000, 45_000, Some(0.01)), secs(600));
        assert_eq!(cap(u64::MAX, u64::MAX, Some(0.0)), secs(600));
    }

    #[test]
    fn the_tightest_quota_above_a_process_counts_and_waiting_is_a_difference() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(dir.path().join("a/cpu.max"), "50000 100000\n").unwrap();
        fs::write(inner.join("cpu.max"), "max 100000\n").unwrap();
        fs::write(inner.join("cpu.stat"), "usage_usec 5\nthrottled_usec 1000000\n").unwrap();
        let cgroup = Cgroup::upwards(&inner, dir.path());
        assert_eq!(cgroup.waited(), None, "a cgroup without a type is the root of all");
        fs::write(inner.join("cgroup.type"), "domain\n").unwrap();
        assert_eq!(cgroup.quota(), Some(0.5));
        let waiting = cgroup.begin();
        fs::write(inner.join("cpu.stat"), "usage_usec 5\nthrottled_usec 1500000\n").unwrap();
        assert_eq!(waiting.in_cgroup(), Some(Duration::from_millis(500)));
        // Pressure says more than throttling, and is preferred where the kernel counts it.
        fs::write(
            inner.join("cpu.pressure"),
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=7000000\nfull avg10=0 total=1\n",
        )
        .unwrap();
        assert_eq!(cgroup.waited(), Some(Duration::from_secs(7)));
    }

    #[test]
    fn without_a_hierarchy_there_is_no_quota() {
        assert_eq!(Cgroup(Vec::new()).quota(), None);
        assert_eq!(Cgroup(Vec::new()).begin().in_cgroup(), None);
    }
}
