//! Secret values in a component's output.

use zeroize::Zeroizing;

/// What stands for a secret value.
pub const MARK: &[u8] = b"[redacted]";

/// Shorter values are words that occur by chance; replacing them would spell the secret out by its absence.
const MIN_BYTES: usize = 4;

/// Lines of a longer secret that are replaced on their own have at least this many bytes.
const MIN_LINE_BYTES: usize = 8;

/// The texts to replace, the longest first.
#[derive(Default)]
pub struct Redactor {
    values: Vec<Zeroizing<Vec<u8>>>,
}

impl Redactor {
    /// Replaces these values, their JSON-escaped forms, and the single lines of a value that has several.
    pub fn new<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut all: Vec<Zeroizing<Vec<u8>>> = Vec::new();
        let mut add = |text: &str, min: usize| {
            if text.len() >= min {
                all.push(Zeroizing::new(text.as_bytes().to_vec()));
            }
        };
        for value in values {
            add(value, MIN_BYTES);
            let escaped = Zeroizing::new(serde_json::Value::from(value).to_string());
            let escaped = &escaped[1..escaped.len() - 1];
            if escaped != value {
                add(escaped, MIN_BYTES);
            }
            if value.contains('\n') {
                value.lines().map(str::trim).for_each(|line| add(line, MIN_LINE_BYTES));
            }
        }
        all.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        all.dedup();
        Self { values: all }
    }

    /// Length of the longest text that is replaced.
    pub fn longest(&self) -> usize {
        self.values.first().map_or(0, |value| value.len())
    }

    /// The first `limit` bytes of `line`, with every value that begins in them replaced, into `out`.
    pub fn redact(&self, line: &[u8], limit: usize, out: &mut Vec<u8>) {
        let mut at = 0;
        while at < line.len().min(limit) {
            if let Some(value) = self.values.iter().find(|value| line[at..].starts_with(value)) {
                out.extend_from_slice(MARK);
                at += value.len();
            } else {
                out.push(line[at]);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(values: &[&str], line: &str, limit: usize) -> String {
        let mut out = Vec::new();
        Redactor::new(values.iter().copied()).redact(line.as_bytes(), limit, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_replaced_wherever_and_however_often_they_stand() {
        assert_eq!(
            redacted(&["s3cret"], "a s3cret, s3crets3cret", 100),
            "a [redacted], [redacted][redacted]"
        );
        assert_eq!(
            redacted(&["s3cret", "s3cret-longer"], "s3cret-longer", 100),
            "[redacted]"
        );
        assert_eq!(redacted(&["abc"], "abc", 100), "abc");
    }

    #[test]
    fn a_value_is_replaced_in_its_json_form_and_line_by_line() {
        assert_eq!(
            redacted(&["q\"uote\\d"], r#"{"k":"q\"uote\\d"}"#, 100),
            r#"{"k":"[redacted]"}"#
        );
        assert_eq!(
            redacted(&["-----BEGIN\nMIIabcdefg\n"], "got MIIabcdefg", 100),
            "got [redacted]"
        );
    }

    #[test]
    fn a_value_across_the_cut_leaves_no_part_of_it() {
        assert_eq!(redacted(&["s3cret"], "0123s3cretX", 6), "0123[redacted]");
    }
}
