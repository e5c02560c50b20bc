//! Durations on the command line.

use std::time::Duration;

/// Reads `90s`, `20m`, `12h` or `30d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "a duration is a whole number and s, m, h or d, such as 90s or 20m".to_owned();
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_names_its_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("20m"), Ok(Duration::from_mins(20)));
        assert_eq!(duration("30d"), Ok(Duration::from_hours(720)));
        for bad in [
            "",
            "20",
            "m",
            "-1m",
            "1.5h",
            "1w",
            "1µ",
            "99999999999999999999d",
            "18446744073709551615d",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
