//! A table of bad files and what is said about each: file, line, column, path, what is wrong and what is accepted.
//!
//! Wherever a value could be quoted, it contains `CANARY`; no text of an error does.

use std::fmt::Write as _;

use occ_core::{
    installation::{InstallationFile, compose},
    registry::Registry,
};

use crate::fixtures::{file_with, host};

/// The error that the text leads to, on reading or on composing.
fn error(text: &str) -> String {
    match InstallationFile::parse(text, "occ.yaml") {
        Err(error) => error.to_string(),
        Ok(file) => match compose(&file, &Registry::linked().unwrap(), &host()) {
            Err(error) => error.to_string(),
            Ok(drivers) => panic!("accepted: {drivers:?}\n{text}"),
        },
    }
}

/// Compares what is said about each file with the stored snapshot of the calling test.
macro_rules! assert_said {
    ($table:expr) => {
        insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(said($table)) })
    };
}

/// What was done to each file, and the error.
fn said(table: &[(&str, String)]) -> String {
    let mut said = String::new();
    for (name, text) in table {
        let error = error(text);
        assert!(!error.contains("CANARY"), "{name}: {error}");
        let _ = writeln!(said, "{name}\n    {error}");
    }
    said
}

fn edited(from: &str, to: &str) -> String {
    file_with(&[(from, to)])
}

/// The stub file with these settings of the IAM Driver.
fn iam(settings: &str) -> String {
    edited(
        "    configuration: {}\n  secret",
        &format!("    configuration:\n{settings}\n  secret"),
    )
}

/// The stub file with these lines after the Compute's settings.
fn compute(settings: &str) -> String {
    edited("        - port: 8001\n", &format!("        - port: 8001\n{settings}"))
}

#[test]
fn documents_that_are_not_one_plain_yaml_document() {
    assert_said!(&[
        ("empty", String::new()),
        ("comments only", "# CANARY\n\n".to_owned()),
        ("null", "~\n".to_owned()),
        ("a text", "CANARY\n".to_owned()),
        ("a list", "- CANARY\n".to_owned()),
        ("unclosed quote", edited("cluster: east", "cluster: \"CANARY")),
        (
            "unclosed bracket",
            edited("{ id: codex, driver: stub }", "{ id: CANARY, driver: stub")
        ),
        ("wrong indentation", edited("    id: local", "   CANARY\n    id: local")),
        ("a tab", edited("    id: local", "\tid: CANARY")),
        ("reserved character", edited("cluster: east", "cluster: @CANARY")),
        (
            "key and value on one line",
            edited("cluster: east", "cluster: east: CANARY")
        ),
        ("a control character", edited("cluster: east", "cluster: CANARY\u{1}")),
        ("two documents", file_with(&[]) + "---\nCANARY: 1\n"),
        ("text after the end", file_with(&[]) + "...\nCANARY\n"),
        ("an anchor", edited("cluster: east", "cluster: &a CANARY")),
        ("an alias", edited("cluster: east", "cluster: *CANARY")),
        ("a bomb of aliases", alias_bomb()),
        ("a merge key", edited("cluster: east", "<<: { cluster: CANARY }")),
        ("a tag", edited("cluster: east", "cluster: !CANARY east")),
        ("a key that is a number", edited("cluster: east", "7: CANARY")),
        ("a key that is a list", edited("cluster: east", "? [CANARY]\n  : 1")),
        (
            "a duplicate key",
            edited("cluster: east", "cluster: CANARY\n  cluster: CANARY")
        ),
        (
            "a duplicate driver",
            edited("  secret:", "  iam: { id: CANARY, driver: stub }\n  secret:")
        ),
        (
            "a duplicate setting",
            iam("      hooks: false\n      \"hooks\": CANARY")
        ),
        ("deep nesting in brackets", "[".repeat(5000)),
        ("deep nesting in blocks", deep_blocks()),
        ("too many values", format!("occ: [{}]", "CANARY,".repeat(30_000))),
        ("NUL in a text", edited("cluster: east", "cluster: \"CANARY\\0\"")),
    ]);
}

fn alias_bomb() -> String {
    let mut text = "a0: &a0 [CANARY]\n".to_owned();
    for i in 1..20 {
        let _ = writeln!(text, "a{i}: &a{i} [{}]", format!("*a{},", i - 1).repeat(9));
    }
    text
}

fn deep_blocks() -> String {
    (0..200).fold(String::new(), |mut text, depth| {
        let _ = writeln!(text, "{}a:", " ".repeat(depth));
        text
    })
}

#[test]
fn numbers_that_are_not_safe() {
    assert_said!(&[
        ("above 2^53", iam("      limit: 9007199254740992")),
        ("below -2^53", iam("      limit: -9007199254740992")),
        ("above 2^64", iam("      limit: 123456789012345678901234567890")),
        ("in hexadecimal", iam("      limit: 0x20000000000000")),
        ("as a fraction", iam("      limit: 1e300")),
        ("infinite", iam("      limit: .inf")),
        ("not a number", iam("      limit: .nan")),
        ("beyond every float", iam("      limit: 1e999")),
        (
            "in a list",
            compute("      limits:\n        - 1\n        - 9007199254740993\n")
        ),
    ]);
}

/// The stub file with these keys of an identity provider.
fn provider(keys: &str) -> String {
    format!("{}authentication:\n  oidc:\n{keys}", file_with(&[]))
}

#[test]
fn identity_providers_that_are_not_described() {
    let good = "    issuer: https://a.example\n    clientId: occ\n    publicUrl: https://occ.example\n";
    let with = |more: &str| provider(&format!("{good}    {more}\n"));
    assert_said!(&[
        (
            "authentication is a text",
            format!("{}authentication: CANARY\n", file_with(&[]))
        ),
        (
            "an unknown way",
            format!("{}authentication: {{ saml: CANARY }}\n", file_with(&[]))
        ),
        ("no issuer", provider("    clientId: CANARY\n")),
        (
            "no client",
            provider("    issuer: CANARY\n    publicUrl: https://occ.example\n")
        ),
        ("no public URL", provider("    issuer: CANARY\n    clientId: occ\n")),
        ("an issuer that is a number", provider("    issuer: 7\n")),
        ("an empty issuer", provider("    issuer: ''\n")),
        ("the secret itself", with("clientSecret: CANARY")),
        (
            "a secret in two places",
            with("clientSecretFile: /CANARY\n    clientSecretEnvironment: CANARY")
        ),
        ("a file that is a list", with("clientSecretFile: [CANARY]")),
        ("an empty variable", with("clientSecretEnvironment: ''")),
        ("a place that is a list", with("afterSignIn: [CANARY]")),
        ("an unknown first sign-in", with("firstSignIn: CANARY")),
        ("a key that is not known", with("scopes: CANARY")),
    ]);
}

#[test]
#[allow(clippy::too_many_lines)] // A line a mistake.
fn values_of_the_wrong_shape() {
    assert_said!(&[
        (
            "an unknown top-level key",
            format!("{}kanary: CANARY\n", file_with(&[]))
        ),
        (
            "a key that is no name",
            format!("{}\"two words CANARY\": 1\n", file_with(&[]))
        ),
        (
            "backend is a mapping",
            format!("{}backend: {{ id: CANARY }}\n", file_with(&[]))
        ),
        (
            "a backend without a type",
            format!("{}backend: [{{ id: CANARY }}]\n", file_with(&[]))
        ),
        (
            "a backend of a type that comes later",
            format!("{}backend:\n  - {{ id: shell, type: CANARY }}\n", file_with(&[]))
        ),
        (
            "two backends of one type",
            format!(
                "{}backend:\n  - {{ id: one, type: chatgpt }}\n  - {{ id: CANARY, type: chatgpt }}\n",
                file_with(&[])
            )
        ),
        (
            "a backend with settings",
            format!(
                "{}backend:\n  - {{ id: one, type: chatgpt, configuration: {{ a: CANARY }} }}\n",
                file_with(&[])
            )
        ),
        ("presets", format!("{}presets: CANARY\n", file_with(&[]))),
        ("observability", format!("{}observability: {{}}\n", file_with(&[]))),
        (
            "runtime",
            format!("{}runtime: {{ nativeWorkerSupport: CANARY }}\n", file_with(&[]))
        ),
        ("no drivers", "occ: {}\n".to_owned()),
        ("drivers is a list", "drivers: [CANARY]\n".to_owned()),
        ("occ is nothing", edited("occ:\n  cluster: east", "occ:")),
        ("an unknown key of occ", edited("cluster: east", "clusters: CANARY")),
        ("a cluster that is a number", edited("cluster: east", "cluster: 7")),
        ("an empty cluster", edited("cluster: east", "cluster: ''")),
        ("an unknown key of logging", edited("level: warn", "format: CANARY")),
        ("an unknown level", edited("level: warn", "level: CANARY")),
        ("a level that is a boolean", edited("level: warn", "level: true")),
        (
            "no secret driver",
            edited("  secret: { id: sec-main, driver: stub, configuration: {} }\n", "")
        ),
        (
            "a kind that comes later",
            edited("  secret:", "  repo: { id: CANARY, driver: github }\n  secret:")
        ),
        ("an unknown kind", edited("  secret:", "  secrets: {}\n  secret:")),
        (
            "a driver in short",
            edited("configuration: { id: cfg-main, driver: stub }", "configuration: CANARY")
        ),
        (
            "a secret driver in short",
            edited(
                "secret: { id: sec-main, driver: stub, configuration: {} }",
                "secret: CANARY"
            )
        ),
        ("no id", edited("id: cfg-main, ", "")),
        ("no driver", edited("cfg-main, driver: stub", "cfg-main")),
        (
            "an unknown key of a driver",
            edited("cfg-main, driver", "cfg-main, settings: { a: CANARY }, driver")
        ),
        (
            "a package",
            edited("cfg-main, driver", "cfg-main, package: CANARY, driver")
        ),
        ("an id with capitals", edited("id: local", "id: CANARY")),
        ("an id that leaves its folder", edited("id: local", "id: ../x")),
        (
            "an id that is too long",
            edited("id: local", &format!("id: {}", "i".repeat(64)))
        ),
        ("an id that is a number", edited("id: local", "id: 7")),
        (
            "a driver name that is none",
            edited("cfg-main, driver: stub", "cfg-main, driver: 'CANARY stub'")
        ),
        (
            "settings that are a list",
            edited(
                "driver: stub, configuration: {}",
                "driver: stub, configuration: [CANARY]"
            )
        ),
        (
            "settings that are nothing",
            edited("    configuration: {}\n", "    configuration:\n")
        ),
        (
            "a harness that is a mapping",
            harness("    id: openclaw\n    driver: stub\n")
        ),
        ("no harness", harness("    []\n")),
        ("two harnesses with one id", edited("id: codex", "id: openclaw")),
        (
            "a bad harness",
            edited("{ id: codex, driver: stub }", "{ id: codex, driver: [CANARY] }")
        ),
    ]);
}

/// The stub file with this instead of its harnesses.
fn harness(with: &str) -> String {
    edited(
        "    - { id: openclaw, driver: stub }\n    - { id: codex, driver: stub }\n",
        with,
    )
}

#[test]
fn plaintext_credentials_and_keys_that_belong_nowhere() {
    assert_said!(&[
        ("a password", iam("      password: CANARY")),
        ("a token", iam("      upstream:\n        - authToken: CANARY")),
        (
            "an API key of the environment",
            compute("      env: { OPENAI_API_KEY: CANARY }\n")
        ),
        ("a numeric password", iam("      password: 31337")),
        ("a list of tokens", iam("      tokens: [CANARY, CANARY]")),
        ("a value below its name", iam("      token: { value: CANARY }")),
        (
            "a named pair",
            compute("      env:\n        - { name: DB_PASSWORD, value: CANARY }\n")
        ),
        ("a header", iam("      headers: { Authorization: CANARY }")),
        (
            "the form of an OpenAI key",
            iam("      note: sk-CANARY0123456789abcdef")
        ),
        (
            "the form of a GitHub token in a list",
            iam("      notes: [a, ghp_CANARY0123456789abcdefABCDEF012345]")
        ),
        (
            "a private key",
            iam("      pem: |\n        -----BEGIN PRIVATE KEY-----\n        CANARY\n        -----END PRIVATE KEY-----")
        ),
        ("a URL with a password", iam("      url: postgres://occ:CANARY@db/occ")),
        ("a connection string", iam("      dsn: host=db password=CANARY")),
        (
            "a key that is one",
            compute("      labels: { sk-CANARY0123456789abcdef: x }\n")
        ),
        ("outside of drivers", format!("{}password: CANARY\n", file_with(&[]))),
        ("installationId", iam("      installationId: CANARY")),
        ("secretRef", compute("      auth: { secretRef: CANARY }\n")),
        ("__proto__", iam("      __proto__: { a: CANARY }")),
    ]);
}

#[test]
fn drivers_that_are_not_linked_or_refuse_their_settings() {
    assert_said!(&[
        (
            "an unknown driver",
            edited("id: local\n    driver: stub", "id: local\n    driver: kubernetes")
        ),
        (
            "an unknown harness",
            edited("id: codex, driver: stub", "id: codex, driver: codex")
        ),
        ("an unknown setting", compute("      poolz: CANARY\n")),
        (
            "an unknown setting that is no name",
            compute("      \"poolz CANARY\": 1\n")
        ),
        (
            "a setting of a driver without settings",
            edited(
                "driver: stub, configuration: {}",
                "driver: stub, configuration: { a: CANARY }"
            )
        ),
        ("a setting of the wrong type", iam("      hooks: CANARY")),
        (
            "a setting of the wrong type in a list",
            edited("port: 8001", "port: CANARY")
        ),
        ("a setting out of range", edited("port: 8001", "port: 70000")),
        ("a setting that is missing in a list", edited("- port: 8001", "- {}")),
        (
            "a setting of another shape",
            edited("        node: /opt/node/bin/node", "        - CANARY")
        ),
        (
            "a setting that the driver itself refuses",
            edited("/opt/node/bin/node", "CANARY/node")
        ),
        ("a driver that cannot work here", compute("      unavailable: true\n")),
        (
            "a driver that answers with another id",
            edited("id: codex, driver: stub", "id: codex, driver: impostor")
        ),
    ]);
}

#[test]
fn drivers_that_do_not_work_together() {
    let sandbox = |compute_settings: &str, sandbox_settings: &str| {
        let text = compute(compute_settings);
        text.replace(
            "  harness:",
            &format!("  sandbox: {{ id: box, driver: stub, configuration: {sandbox_settings} }}\n  harness:"),
        )
    };
    assert_said!(&[
        (
            "a sandbox on a compute without hooks",
            sandbox("", "{ facets: [process] }")
        ),
        (
            "a sandbox that confines nothing",
            sandbox("      hookHost: true\n", "{}")
        ),
        (
            "a sandbox that names a facet twice",
            sandbox("      hookHost: true\n", "{ facets: [process, process] }")
        ),
        (
            "a sandbox with a home that is not normal",
            sandbox("      hookHost: true\n", "{ facets: [process], relative: true }")
        ),
        ("hooks on a compute without hooks", iam("      hooks: true")),
        ("maintenance without a pause", compute("      maintenanceSeconds: 0\n")),
    ]);
}
