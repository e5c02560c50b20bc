//! What looks like a plaintext credential (spec/contracts 2.5): by the name of its setting, or by its own form.
//!
//! Wrong in the safe direction: a setting that names where a credential lies ends in `File`, `Path`, `Name` and the like,
//! and is accepted; one that ends in `token` or `password` and holds a text is not, whatever the text is.

/// Last words of a setting's name that say that its value is a credential.
const WORDS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "secret",
    "token",
    "jwt",
    "bearer",
    "authorization",
    "credential",
    "cookie",
    "apikey",
    "accesskey",
    "authkey",
    "privatekey",
    "secretkey",
];

/// Words that make a following `key` a credential. `publicKey`, `partitionKey` and a plain `key` are none.
const KEYS: &[&str] = &[
    "api",
    "access",
    "account",
    "admin",
    "auth",
    "encryption",
    "master",
    "private",
    "secret",
    "service",
    "shared",
    "signing",
    "ssh",
];

/// Below a credential's name, these hold its value.
const VALUE_NAMES: &[&str] = &["value", "plain", "plaintext", "literal", "inline", "data", "text"];

/// How a setting's name speaks of credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Named {
    /// Not at all, or of where one lies.
    No,
    /// Of one.
    One,
    /// Of several; `maxTokens: 4096` is none, a list of texts is.
    Several,
}

/// What the name of a setting promises.
pub(super) fn named(key: &str) -> Named {
    let words = words(key);
    let Some((last, before)) = words.split_last() else {
        return Named::No;
    };
    let is = |word: &str| {
        WORDS.contains(&word) || (word == "key" && before.last().is_some_and(|w| KEYS.contains(&w.as_str())))
    };
    match last.strip_suffix('s') {
        _ if is(last) => Named::One,
        Some(singular) if is(singular) => Named::Several,
        _ => Named::No,
    }
}

/// Whether a key below a credential's name holds the credential.
pub(super) fn holds_value(key: &str) -> bool {
    VALUE_NAMES.contains(&key.to_ascii_lowercase().as_str())
}

/// Words under a credential's name that switch something and are no credential.
pub(super) fn is_switch(text: &str) -> bool {
    matches!(text, "" | "disabled" | "enabled" | "none" | "optional" | "required")
}

/// `bearerTokenFile`, `OPENAI_API_KEY` and `gateway.api-key` in lower-case words.
fn words(key: &str) -> Vec<String> {
    let chars: Vec<char> = key.chars().collect();
    let mut words = vec![String::new()];
    for (i, &c) in chars.iter().enumerate() {
        let after_lower = i > 0 && (chars[i - 1].is_lowercase() || chars[i - 1].is_ascii_digit());
        let before_lower = chars.get(i + 1).is_some_and(|n| n.is_lowercase());
        let ends_acronym = i > 0 && chars[i - 1].is_uppercase() && before_lower;
        if !c.is_alphanumeric() || (c.is_uppercase() && (after_lower || ends_acronym)) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("starts with one").extend(c.to_lowercase());
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// Beginnings of issued credentials, and how many characters of them there are at least.
const PREFIXES: &[(&str, usize)] = &[
    ("sk-", 20),
    ("sk_live_", 20),
    ("sk_test_", 20),
    ("rk_live_", 20),
    ("ghp_", 30),
    ("gho_", 30),
    ("ghu_", 30),
    ("ghs_", 30),
    ("ghr_", 30),
    ("github_pat_", 30),
    ("glpat-", 20),
    ("xoxb-", 20),
    ("xoxp-", 20),
    ("xoxa-", 20),
    ("xoxr-", 20),
    ("xapp-", 20),
    ("AKIA", 20),
    ("ASIA", 20),
    ("AIza", 35),
    ("ya29.", 20),
    ("hf_", 30),
    ("npm_", 30),
    ("pypi-", 30),
    ("dop_v1_", 30),
    ("hvs.", 24),
    ("SG.", 30),
    ("gsk_", 30),
    ("xai-", 30),
];

/// Whether the text has, anywhere in it, the form of an issued credential.
pub(super) fn is_one(text: &str) -> bool {
    text.contains("PRIVATE KEY-----")
        || has_password_in_url(text)
        || has_inline_password(text)
        || text
            .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+')))
            .any(is_issued)
        || has_scheme(text)
}

fn is_issued(token: &str) -> bool {
    let prefixed = |&(prefix, len): &(&str, usize)| token.starts_with(prefix) && token.len() >= len;
    let jwt = || token.starts_with("eyJ") && token.len() >= 40 && token.matches('.').count() == 2;
    // Names such as `sk-learn-pipeline-runner` have no digit.
    (PREFIXES.iter().any(prefixed) && token.bytes().any(|b| b.is_ascii_digit())) || jwt()
}

/// `Bearer …` and `Basic …`, as they stand in a header.
fn has_scheme(text: &str) -> bool {
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if (word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic"))
            && words
                .clone()
                .next()
                .is_some_and(|w| w.len() >= 12 && w.bytes().any(|b| b.is_ascii_digit()))
        {
            return true;
        }
    }
    false
}

/// `scheme://user:password@host`
fn has_password_in_url(text: &str) -> bool {
    text.match_indices("://").any(|(i, _)| {
        let rest = &text[i + 3..];
        let authority = &rest[..rest
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#'))
            .unwrap_or(rest.len())];
        authority
            .rsplit_once('@')
            .and_then(|(user, _)| user.split_once(':'))
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

/// `host=db password=…`, `Server=db;Password=…`, `--token=…`, `?api_key=…`
fn has_inline_password(text: &str) -> bool {
    let apart = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '?' | ',' | '"' | '\'');
    text.split(apart).any(|part| {
        part.split_once('=')
            .is_some_and(|(name, value)| named(name) == Named::One && !is_switch(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_end_like_a_credential_are_one() {
        for key in [
            "password",
            "Password",
            "db_password",
            "gatewayPassword",
            "token",
            "authToken",
            "OPENAI_API_KEY",
            "api-key",
            "apiKey",
            "APIKey",
            "apikey",
            "clientSecret",
            "secretKey",
            "signing.key",
            "Authorization",
            "private_key",
            "sshKey",
            "credential",
        ] {
            assert_eq!(named(key), Named::One, "{key}");
        }
        for key in ["tokens", "apiKeys", "secrets", "maxTokens", "credentials"] {
            assert_eq!(named(key), Named::Several, "{key}");
        }
    }

    #[test]
    fn names_of_where_a_credential_lies_are_none() {
        for key in [
            "bearerTokenFile",
            "apiKeyPath",
            "credentialTtlSeconds",
            "keyFile",
            "key",
            "publicKey",
            "transportSecretPrefix",
            "secretName",
            "tokenizer",
            "passwordless",
            "kubeconfigPath",
            "tools",
            "node",
            "",
            "-",
            "é",
        ] {
            assert_eq!(named(key), Named::No, "{key}");
        }
    }

    #[test]
    fn forms_of_issued_credentials_are_found_anywhere_in_a_text() {
        for text in [
            "sk-proj-0123456789abcdefghij",
            "key: sk-ant-api03-abcdefghijklmnop",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-123456789012-abcdefghij",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc",
            "Bearer 0123456789abcdef",
            "postgres://occ:hunter2@db/occ",
            "host=db user=occ password=hunter2",
            "Server=db;Password=hunter2",
            "--token=hunter2",
            "https://host/path?api_key=hunter2",
        ] {
            assert!(is_one(text), "{text}");
        }
    }

    #[test]
    fn ordinary_settings_are_not_credentials() {
        for text in [
            "/usr/lib/node_modules/openclaw/openclaw.mjs",
            "registry.example/gateway@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "https://user@host:8080/path",
            "http://127.0.0.1:18789",
            "/run/occ/shell.token",
            "sk-learn-pipeline-runner",
            "bearer of news",
            "a token in the text",
            "node24",
            "",
        ] {
            assert!(!is_one(text), "{text}");
        }
    }
}
