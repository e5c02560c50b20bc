//! `docs/reasons/` says what the code says: a page a code, the fixed messages, and an index.

#![cfg(feature = "engine")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use occ_core::{
    id::{AgentId, NamespaceId, RevisionId},
    reason::{
        ApiCode, Cause, Failure, Pending, PreparationReason, PreparationStage, ProbeStatus, RuntimeCode, Success,
        catalogue,
    },
    status,
    store::{DeploymentRow, WorkState},
    time::Timestamp,
    work::LastAttempt,
};

/// A vocabulary as the pages present it.
struct Vocabulary {
    /// Its heading in the index.
    heading: &'static str,
    /// What may stand above a quoted message of it. The second form is for codes that no deployment shows.
    labels: &'static [&'static str],
    /// Code and message, in the order of the enum.
    entries: Vec<(&'static str, &'static str)>,
}

const RECORDED: &str = "Recorded progress";
const API_ERROR: &str = "API error, HTTP ";

macro_rules! vocabulary {
    ($name:ident, $heading:literal, $labels:expr) => {
        Vocabulary {
            heading: $heading,
            labels: &$labels,
            entries: $name::ALL.iter().map(|r| (r.code(), r.message())).collect(),
        }
    };
}

fn vocabularies() -> [Vocabulary; 6] {
    [
        vocabulary!(Pending, "Deployment progress", ["Deployment progress", RECORDED]),
        vocabulary!(Failure, "Deployment error", ["Deployment error", "Error of other work"]),
        vocabulary!(Success, "Result of finished work", ["Result of finished work"]),
        vocabulary!(ApiCode, "API error", [API_ERROR]),
        vocabulary!(RuntimeCode, "Runtime failure", ["Runtime failure"]),
        vocabulary!(PreparationReason, "Preparation", ["Preparation"]),
    ]
}

impl Vocabulary {
    fn accepts(&self, label: &str) -> bool {
        match self.labels {
            [API_ERROR] => http_status(label).is_some(),
            labels => labels.contains(&label),
        }
    }

    fn message(&self, code: &str) -> Option<&'static str> {
        self.entries
            .iter()
            .find_map(|(c, message)| (*c == code).then_some(*message))
    }
}

fn http_status(label: &str) -> Option<u16> {
    let status = label.strip_prefix(API_ERROR)?.parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reasons")
}

fn read(name: &str) -> String {
    let path = directory().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every page by its code.
fn pages() -> BTreeMap<String, String> {
    let names = fs::read_dir(directory())
        .expect("docs/reasons exists")
        .map(|entry| entry.expect("it is readable").file_name().into_string().expect("UTF-8"));
    names
        .filter(|name| name != "README.md")
        .map(|name| {
            let code = name
                .strip_suffix(".md")
                .unwrap_or_else(|| panic!("{name} is no page"))
                .to_owned();
            let text = read(&name);
            (code, text)
        })
        .collect()
}

/// The quoted messages of a page with what stands above each.
fn quotes(page: &str) -> Vec<(&str, &str)> {
    let lines: Vec<_> = page.lines().collect();
    lines
        .windows(3)
        .filter_map(|window| match window {
            [label, "", quote] => Some((label.strip_suffix(':')?, quote.strip_prefix("> ")?)),
            _ => None,
        })
        .collect()
}

fn status_of(page: &str) -> Option<u16> {
    quotes(page).into_iter().find_map(|(label, _)| http_status(label))
}

#[test]
fn every_code_has_a_page_and_no_page_lacks_a_code() {
    let codes: BTreeSet<_> = vocabularies()
        .iter()
        .flat_map(|v| v.entries.iter().map(|(code, _)| (*code).to_owned()))
        .collect();
    let pages: BTreeSet<_> = pages().into_keys().collect();
    let missing: Vec<_> = codes.difference(&pages).collect();
    let orphaned: Vec<_> = pages.difference(&codes).collect();
    assert!(
        missing.is_empty() && orphaned.is_empty(),
        "codes without a page: {missing:?}; pages without a code: {orphaned:?}"
    );
}

#[test]
fn the_vocabularies_checked_here_are_those_of_the_catalogue() {
    let checked: BTreeSet<_> = vocabularies().into_iter().flat_map(|v| v.entries).collect();
    let unknown: Vec<_> = catalogue()
        .into_iter()
        .filter(|entry| !checked.contains(entry))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn a_page_quotes_the_message_of_each_vocabulary_that_has_its_code() {
    for (code, page) in pages() {
        assert_eq!(page.lines().next(), Some(format!("# {code}").as_str()));
        let found = quotes(&page);
        let quoted_lines = page.lines().filter(|line| line.starts_with('>')).count();
        assert_eq!(found.len(), quoted_lines, "{code}: a quote has no label above it");
        let mut wanted = 0;
        for vocabulary in vocabularies() {
            let quoted: Vec<_> = found
                .iter()
                .filter(|(label, _)| vocabulary.accepts(label))
                .map(|(_, message)| *message)
                .collect();
            let message = vocabulary.message(&code);
            wanted += usize::from(message.is_some());
            assert_eq!(
                quoted,
                message.into_iter().collect::<Vec<_>>(),
                "{code}, {}",
                vocabulary.heading
            );
        }
        assert_eq!(found.len(), wanted, "{code}: a label is none of a vocabulary");
    }
}

#[test]
fn a_page_says_what_it_means_why_it_happens_and_what_to_do() {
    for (code, page) in pages() {
        let headings: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let wanted = ["Meaning", "Why it happens", "What to do", "Data"];
        assert!(
            headings == wanted[..3] || headings == wanted,
            "{code} has the sections {headings:?}"
        );
    }
}

#[test]
fn the_index_lists_each_code_of_each_vocabulary_once() {
    let index = read("README.md");
    for vocabulary in vocabularies() {
        let (_, rest) = index
            .split_once(&format!("\n## {}\n", vocabulary.heading))
            .unwrap_or_else(|| panic!("no section {}", vocabulary.heading));
        let section = rest.split("\n## ").next().unwrap_or_default();
        let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| [")).collect();
        let wanted: Vec<_> = vocabulary
            .entries
            .iter()
            .map(|(code, message)| match status_of(&read(&format!("{code}.md"))) {
                Some(status) if vocabulary.labels == [API_ERROR] => {
                    format!("| [{code}]({code}.md) | {status} | {message} |")
                }
                _ => format!("| [{code}]({code}.md) | {message} |"),
            })
            .collect();
        assert_eq!(
            rows,
            wanted,
            "the rows of {} are\n{}",
            vocabulary.heading,
            wanted.join("\n")
        );
    }
    let sections = index.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(sections, vocabularies().len());
}

#[test]
fn a_page_names_only_codes_that_exist() {
    let pages = pages();
    // Words in the form of a code that are other fixed identifiers.
    let others = [
        "PROCESS_EXIT",
        "PROBE_STATUS",
        "INVALID_OUTPUT",
        "WRAPPER_ERROR",
        "UNKNOWN_FIELD",
        "INVALID_TYPE",
        "INVALID_FORMAT",
        "INVALID_VALUE",
        "TOO_LONG",
        "TOO_DEEP",
        "OPENCLAW_GATEWAY_PASSWORD",
    ];
    for (code, page) in &pages {
        let words = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let codes = words.filter(|word| word.contains('_') && word.chars().any(|c| c.is_ascii_uppercase()));
        for word in codes.filter(|word| !word.chars().any(|c| c.is_ascii_lowercase())) {
            assert!(
                pages.contains_key(word) || others.contains(&word),
                "{code} names {word}"
            );
        }
        for target in page.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(directory().join(target).is_file(), "{code} links to {target}");
        }
    }
}

#[test]
fn progress_that_the_status_does_not_show_is_not_presented_as_shown() {
    for &reason in Pending::ALL {
        let row = DeploymentRow {
            revision: RevisionId::random(),
            agent: AgentId::random(),
            namespace: NamespaceId::random(),
            work: Some(WorkState::Running {
                last_attempt: Some(LastAttempt {
                    code: reason,
                    at: Timestamp::from_millis(0),
                    refusal: None,
                    failed_stops: 0,
                }),
            }),
            left_over: None,
        };
        let shown = status::derive(row)
            .and_then(|deployment| deployment.progress?.last_attempt)
            .expect("work in progress shows its last attempt");
        let page = read(&format!("{reason}.md"));
        let recorded_only = quotes(&page).iter().any(|(label, _)| *label == RECORDED);
        assert_eq!(recorded_only, shown.code != reason, "{reason}");
    }
}

#[test]
fn the_words_inside_the_data_of_an_error_are_explained() {
    let probe = read("RUNTIME_MODEL_PROBE_FAILED.md");
    for status in ProbeStatus::ALL {
        let row = format!("| `{}` | {} |", status.code(), status.message());
        assert!(probe.contains(&row), "no row {row}");
    }
    let causes = [
        Cause::ProcessExit(None),
        Cause::ProbeStatus(ProbeStatus::Other),
        Cause::InvalidJson,
        Cause::InvalidShape,
        Cause::WrapperError,
    ];
    for (kind, detail) in causes.iter().map(Cause::parts) {
        let row = probe
            .lines()
            .find(|line| line.starts_with(&format!("| `{kind}` |")))
            .unwrap_or_else(|| panic!("no row {kind}"));
        if kind == "INVALID_OUTPUT" {
            let detail = detail.expect("it always has a detail");
            assert!(row.contains(&format!("`{detail}`")), "{kind} {detail}");
        }
    }
    let startup = read("RUNTIME_STARTUP_FAILED.md");
    for stage in PreparationStage::ALL {
        assert!(startup.contains(&format!("`{}`", stage.code())), "{stage}");
    }
}
