//! What looks like a credential, for whatever is shown or recorded.

pub(crate) const REDACTED: &str = "[redacted]";
/// Beginnings of well-known credentials, our own service keys among them.
const PREFIXES: [&str; 19] = [
    "occ_",
    "sk-",
    "sk_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "xapp-",
    "AKIA",
    "eyJ",
];
/// Names whose value is not shown, whatever it looks like.
const NAMES: [&str; 8] = [
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "authorization",
];
/// A beginning with less behind it is a word.
const REST_MIN_BYTES: usize = 5;

/// The text without what looks like a credential, wherever it stands, and without control characters.
///
/// Words are runs of the characters that credentials are written with; one may begin a word, or follow something that is no letter and no
/// digit, as in a path.
pub(crate) fn without_credentials(text: &str) -> String {
    let in_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | '/' | '~' | '%');
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut hide = false;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|c: char| in_word(c) != in_word(first)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        rest = after;
        if !in_word(first) {
            // What ends a value that is hidden by its name: the next word is another field's.
            hide = hide && !part.contains([',', ';', '}', '&']);
            out.extend(part.chars().map(|c| if c.is_control() && c != '\t' { '?' } else { c }));
            continue;
        }
        let lower = part.to_ascii_lowercase();
        let scheme = lower == "bearer" || (hide && lower == "basic");
        let credential = if hide { Some(0) } else { credential_in(part) };
        match credential {
            Some(at) if !scheme => {
                out.push_str(&part[..at]);
                out.push_str(REDACTED);
                hide = false;
            }
            _ => {
                out.push_str(part);
                hide = scheme || (NAMES.iter().any(|name| lower.ends_with(name)) && assigns(rest));
            }
        }
    }
    out
}

/// Where a credential begins in a word.
fn credential_in(word: &str) -> Option<usize> {
    let begins = |at: &usize| {
        let before = word.as_bytes().get(at.wrapping_sub(1));
        let inside = before.is_some_and(u8::is_ascii_alphanumeric);
        let credential = |prefix: &&str| {
            let rest = word[*at..].strip_prefix(*prefix);
            rest.is_some_and(|rest| rest.len() >= REST_MIN_BYTES)
        };
        !inside && PREFIXES.iter().any(credential)
    };
    // A word is ASCII.
    (0..word.len()).find(begins)
}

/// Whether what follows a name gives it a value: `=`, `:` or `": "`.
fn assigns(rest: &str) -> bool {
    rest.trim_start_matches(['"', '\'', ' ']).starts_with(['=', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_found_wherever_it_stands() {
        for (text, shown) in [
            ("see https://x.test/sk-live-0123456789", "see https://x.test/[redacted]"),
            (
                "the key AKIAIOSFODNN7EXAMPLE was refused",
                "the key [redacted] was refused",
            ),
            ("xapp-1-A0-012345 and ghu_0123456789", "[redacted] and [redacted]"),
            ("sent Bearer abc", "sent Bearer [redacted]"),
        ] {
            assert_eq!(without_credentials(text), shown);
        }
    }

    #[test]
    fn words_that_only_sound_like_one_stay() {
        for text in ["disk-usage of task_sk", "sk-1", "monkey_occurs", "eyJ"] {
            assert_eq!(without_credentials(text), text);
        }
    }
}
