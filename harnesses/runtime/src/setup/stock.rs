//! The texts that the native initialization writes, and their identity.

use std::{collections::BTreeMap, fs, io, path::Path};

use occ_core::{digest, resource::WorkspaceFileName};

/// The four stock texts, rendered: a template without its front matter.
pub struct Stock(BTreeMap<WorkspaceFileName, String>);

impl Stock {
    /// Reads the templates.
    pub fn read(directory: &str) -> io::Result<Self> {
        let text = |name: WorkspaceFileName| fs::read_to_string(Path::new(directory).join(name.as_str()));
        WorkspaceFileName::ALL
            .into_iter()
            .map(|name| Ok((name, render(&text(name)?).to_owned())))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Whether the text is the stock one of this name.
    pub fn is(&self, name: WorkspaceFileName, text: &[u8]) -> bool {
        self.0.get(&name).is_some_and(|stock| stock.as_bytes() == text)
    }

    /// SHA-256 of the JSON list of `[name, text]`, in hexadecimal (spec/drivers 1.14).
    pub fn digest(&self) -> String {
        let list: Vec<_> = WorkspaceFileName::ALL
            .iter()
            .filter_map(|name| Some((name.as_str(), self.0.get(name)?)))
            .collect();
        digest::hex(&serde_json::to_vec(&list).unwrap_or_default())
    }
}

/// The text after a leading block between two `---` lines, and the empty lines that follow it.
fn render(template: &str) -> &str {
    let Some(rest) = template.strip_prefix("---\n") else {
        return template;
    };
    match rest.split_once("\n---\n") {
        Some((_, text)) => text.trim_start_matches('\n'),
        None => template,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_is_no_part_of_a_stock_text() {
        assert_eq!(
            render("---\ntitle: x\n---\n\n# Soul\n\n---\nmore\n"),
            "# Soul\n\n---\nmore\n"
        );
        assert_eq!(render("# Soul\n---\nx\n---\n"), "# Soul\n---\nx\n---\n");
        assert_eq!(render("---\nnever closed\n"), "---\nnever closed\n");
    }

    #[test]
    fn the_identity_is_of_names_and_texts_in_order() {
        let dir = tempfile::tempdir().unwrap();
        for name in WorkspaceFileName::ALL {
            fs::write(
                dir.path().join(name.as_str()),
                format!("---\na: b\n---\n\n{}\n", name.as_str()),
            )
            .unwrap();
        }
        let stock = Stock::read(dir.path().to_str().unwrap()).unwrap();
        let list = r#"[["AGENTS.md","AGENTS.md\n"],["SOUL.md","SOUL.md\n"],["IDENTITY.md","IDENTITY.md\n"],["USER.md","USER.md\n"]]"#;
        assert_eq!(stock.digest(), digest::hex(list.as_bytes()));
        assert!(stock.is(WorkspaceFileName::Soul, b"SOUL.md\n"));
    }
}
