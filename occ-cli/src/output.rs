//! What a command prints: tables and records for people, the API's own JSON for programs.

use std::io::{self, IsTerminal as _, Write as _};

use clap::ValueEnum;
use console::measure_text_width;
use serde::Serialize;

use crate::exit::{Done, Exit, Failure};

/// The form of a result on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document: what the API answered.
    Json,
}

/// Where results go.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Output {
    format: Format,
}

/// Names and texts, in the order in which people read them.
pub(crate) type Fields = Vec<(&'static str, String)>;

impl Output {
    pub(crate) const fn new(format: Format) -> Self {
        Self { format }
    }

    pub(crate) fn is_json(self) -> bool {
        self.format == Format::Json
    }

    /// Many things of one kind.
    pub(crate) fn list<T: Serialize>(self, items: &[T], columns: &[&str], cells: impl Fn(&T) -> Vec<String>) -> Done {
        match self.format {
            Format::Json => print(&json(&items)),
            Format::Text => print(&table(columns, &items.iter().map(cells).collect::<Vec<_>>())),
        }
    }

    /// One thing.
    pub(crate) fn one<T: Serialize>(self, item: &T, fields: impl Fn(&T) -> Fields) -> Done {
        match self.format {
            Format::Json => print(&json(item)),
            Format::Text => print(&record(&fields(item))),
        }
    }

    /// One thing whose text is written by hand, such as a document or a log.
    pub(crate) fn text<T: Serialize>(self, item: &T, text: impl Fn(&T) -> String) -> Done {
        match self.format {
            Format::Json => print(&json(item)),
            Format::Text => print(&for_reader(&text(item))),
        }
    }

    /// Something was done of which there is nothing to show.
    pub(crate) fn done(self, what: &str) -> Done {
        match self.format {
            Format::Json => print("{}\n"),
            Format::Text => print(&format!("{what}\n")),
        }
    }
}

fn json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Columns as wide as their widest cell; no white space at a line's end.
fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let heads: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    let lines: Vec<Vec<String>> = std::iter::once(&heads)
        .chain(rows)
        .map(|cells| cells.iter().map(|cell| one_line(cell)).collect())
        .collect();
    let width = |index: usize| {
        lines
            .iter()
            .filter_map(|cells| cells.get(index))
            .map(|cell| measure_text_width(cell))
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for cells in &lines {
        let mut line = String::new();
        for (cell, width) in cells.iter().zip(&widths) {
            line += cell;
            line.extend(std::iter::repeat_n(
                ' ',
                width + 2 - measure_text_width(cell).min(*width),
            ));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// One field a line; the further lines of a text stand below its first.
fn record(fields: &[(&'static str, String)]) -> String {
    let width = fields.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (name, value) in fields {
        let mut name = *name;
        for line in value.lines().chain(value.is_empty().then_some("-")) {
            text += format!("{name:width$}  {}", one_line(line)).trim_end();
            text.push('\n');
            name = "";
        }
    }
    text
}

/// Names are free text: one that steers the terminal must not.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if steers(c) { '?' } else { c }).collect()
}

/// What a workload wrote, without what would steer the terminal that shows it. A file gets it as it is.
fn for_reader(text: &str) -> String {
    if io::stdout().is_terminal() {
        harmless(text)
    } else {
        text.to_owned()
    }
}

fn harmless(text: &str) -> String {
    let shown = |c: char| if steers(c) && !matches!(c, '\n' | '\t') { '?' } else { c };
    text.chars().map(shown).collect()
}

/// Control characters, and those that turn the reading direction around.
fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Writes to standard output. A reader that has read enough is no failure.
fn print(text: &str) -> Done {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            Exit::Refused,
            format!("cannot write the result: {}", error.kind()),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            vec!["a".to_owned(), "first".to_owned()],
            vec!["much longer".to_owned(), "b".to_owned()],
            vec!["日本".to_owned(), "wide".to_owned()],
        ];
        assert_eq!(
            table(&["NAME", "ID"], &rows),
            "NAME         ID\na            first\nmuch longer  b\n日本         wide\n"
        );
    }

    #[test]
    fn an_empty_list_still_has_its_head() {
        assert_eq!(table(&["NAME", "ID"], &[]), "NAME  ID\n");
    }

    #[test]
    fn further_lines_of_a_field_stand_below_its_first() {
        let fields = vec![
            ("id", "agt_1".to_owned()),
            ("error", "one\ntwo".to_owned()),
            ("none", String::new()),
        ];
        assert_eq!(record(&fields), "id     agt_1\nerror  one\n       two\nnone   -\n");
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        let evil = "a\u{1b}[2Jb\r\u{202e}c\u{9b}".to_owned();
        assert_eq!(table(&["NAME"], &[vec![evil.clone()]]), "NAME\na?[2Jb??c?\n");
        assert_eq!(record(&[("name", evil)]), "name  a?[2Jb??c?\n");
    }

    #[test]
    fn a_log_keeps_its_lines_and_loses_what_steers() {
        assert_eq!(harmless("a\tb\n\u{1b}[31mred\u{7}\n"), "a\tb\n?[31mred?\n");
    }
}
