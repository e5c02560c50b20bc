//! The Installation of the stock binary.

use std::collections::BTreeMap;

use occ_core::{
    driver::DriverKind,
    installation::{InstallationFile, LogLevel, stock_yaml},
};
use proptest::prelude::*;
use serde_json::json;

fn tools(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(name, path)| ((*name).to_owned(), (*path).to_owned()))
        .collect()
}

#[test]
fn the_stock_installation_is_a_file_that_people_can_edit() {
    let text = stock_yaml(&tools(&[
        ("node", "/home/me/.cache/occ/node/bin/node"),
        ("openclaw", "/home/me/.cache/occ/openclaw/openclaw.mjs"),
    ]));
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(text) });
}

#[test]
fn the_stock_installation_selects_what_the_stock_binary_links() {
    let file = InstallationFile::stock(&tools(&[("node", "/opt/node")])).unwrap();
    let selected: Vec<_> = file.selections().iter().map(|s| (s.kind(), s.driver())).collect();
    assert_eq!(
        selected,
        [
            (DriverKind::Configuration, "local"),
            (DriverKind::Iam, "native"),
            (DriverKind::Secret, "local"),
            (DriverKind::Compute, "process"),
            (DriverKind::Harness, "openclaw"),
        ]
    );
    assert_eq!(file.log_level(), LogLevel::Info);
    assert_eq!(
        file.selections()[3].settings(),
        json!({ "tools": { "node": "/opt/node" } })
    );
}

#[test]
fn no_tools_are_an_empty_mapping() {
    let file = InstallationFile::stock(&BTreeMap::new()).unwrap();
    assert_eq!(file.selections()[3].settings(), json!({ "tools": {} }));
}

proptest! {
    #[test]
    fn any_path_is_read_back_as_it_was_given(path in "[^\0]{0,40}") {
        let file = InstallationFile::stock(&tools(&[("node", &path)])).unwrap();
        prop_assert_eq!(&file.selections()[3].settings()["tools"]["node"], &json!(path));
    }
}
