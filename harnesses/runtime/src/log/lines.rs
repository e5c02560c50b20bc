//! Output as lines of bounded length.

use super::Redactor;

/// Longest line that is kept, in bytes before redaction.
pub const LINE_MAX_BYTES: usize = 16 * 1024;

/// Cuts a stream into redacted lines. A value that arrives in two reads is still seen whole.
pub struct Lines<'a> {
    redactor: &'a Redactor,
    line: Vec<u8>,
    out: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// A stream without output yet.
    pub const fn new(redactor: &'a Redactor) -> Self {
        Self {
            redactor,
            line: Vec::new(),
            out: Vec::new(),
        }
    }

    /// Takes what was read, and gives each line that it completes.
    pub fn push(&mut self, mut read: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(newline) = read.iter().position(|byte| *byte == b'\n') {
            self.keep(&read[..newline]);
            self.emit(&mut line);
            read = &read[newline + 1..];
        }
        self.keep(read);
    }

    /// The stream has ended; gives the line that has no newline.
    pub fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        if !self.line.is_empty() {
            self.emit(&mut line);
        }
    }

    fn keep(&mut self, part: &[u8]) {
        // A value may begin in the last byte that is shown, so that much more is needed to recognize it.
        let room = (LINE_MAX_BYTES + self.redactor.longest()).saturating_sub(self.line.len());
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn emit(&mut self, line: &mut impl FnMut(&[u8])) {
        self.out.clear();
        self.redactor.redact(&self.line, LINE_MAX_BYTES, &mut self.out);
        self.out.truncate(LINE_MAX_BYTES);
        if self.out.last() == Some(&b'\r') {
            self.out.pop();
        }
        line(&self.out);
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(redactor: &Redactor, reads: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::new(redactor);
        let mut seen = Vec::new();
        for read in reads {
            lines.push(read, |line| seen.push(String::from_utf8_lossy(line).into_owned()));
        }
        lines.finish(|line| seen.push(String::from_utf8_lossy(line).into_owned()));
        seen
    }

    #[test]
    fn a_value_that_spans_two_reads_is_replaced() {
        let redactor = Redactor::new(["s3cret"].into_iter());
        assert_eq!(all(&redactor, &[b"x s3c", b"ret y\nlast"]), ["x [redacted] y", "last"]);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let redactor = Redactor::new(["s3cret"].into_iter());
        let mut long = vec![b'a'; LINE_MAX_BYTES - 3];
        long.extend_from_slice(b"s3cret and more\nnext\r\n");
        let lines = all(&redactor, &[&long]);
        assert_eq!(lines[0].len(), LINE_MAX_BYTES);
        assert!(!lines[0].contains("s3c"));
        assert_eq!(lines[1], "next");
    }
}
