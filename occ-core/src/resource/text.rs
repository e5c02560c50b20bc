//! Short texts with a rule: names, environment names, principal ids (spec/engine 1.2).

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// A text is not a name. Never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// No text at all.
    #[error("must not be empty")]
    Empty,
    /// More than 200 Unicode code points.
    #[error("must be at most 200 characters")]
    TooLong,
    /// White space at either end, a control character, or a line or paragraph separator.
    #[error("must have no surrounding white space and no control characters")]
    Forbidden,
}

fn check_name(text: &str) -> Result<(), InvalidName> {
    let forbidden = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    if text.is_empty() {
        Err(InvalidName::Empty)
    } else if text.chars().count() > 200 {
        Err(InvalidName::TooLong)
    } else if text.trim() != text || text.chars().any(forbidden) {
        Err(InvalidName::Forbidden)
    } else {
        Ok(())
    }
}

macro_rules! texts {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(String);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;
            fn try_from(text: String) -> Result<Self, InvalidName> {
                check_name(&text).map(|()| Self(text))
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;
            fn from_str(text: &str) -> Result<Self, InvalidName> {
                text.to_owned().try_into()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "minLength": 1, "maxLength": 200 })
            }
        }
    )*};
}

texts! {
    /// A resource's name: 1 to 200 code points, trimmed, no control characters.
    Name;
    /// The id of a Backend that the Installation configures; the same rule as [`Name`].
    BackendId;
    /// Who acts: a human Principal, a service principal or an Agent's service principal. Opaque.
    PrincipalId;
}

#[cfg(feature = "engine")]
impl Name {
    /// The name of the Secret that holds the issued token of this account.
    pub(crate) fn access_token_of(account: crate::id::ServiceAccountId) -> Self {
        Self(format!("Access token of {account}"))
    }
}

/// The name of an environment variable that a Configuration may bind: `^[A-Za-z_][A-Za-z0-9_]{0,252}$` and not reserved.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct EnvName(String);

/// A text is not the name of an environment variable that a caller may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEnvName {
    /// Not `^[A-Za-z_][A-Za-z0-9_]{0,252}$`.
    #[error("must match ^[A-Za-z_][A-Za-z0-9_]*$ and have at most 253 characters")]
    Form,
    /// The platform, the runtime or the model credential owns it (spec/contracts 9.6).
    #[error("is a reserved destination")]
    Reserved,
}

const RESERVED_PREFIXES: [&str; 17] = [
    "OPENCLAW_",
    "CODEX_",
    "OCC_",
    "KUBERNETES_",
    "APP_SERVER_",
    "NODE_",
    "LD_",
    "DYLD_",
    "PYTHON",
    "SSL_",
    "TLS_",
    "NPM_",
    "PNPM_",
    "OTEL_",
    "OPENAI_",
    "ANTHROPIC_",
    "XDG_",
];
const RESERVED_NAMES: [&str; 15] = [
    "PATH",
    "HOME",
    "TMPDIR",
    "ENV",
    "BASH_ENV",
    "IFS",
    "SHELL",
    "USER",
    "LOG_FORMAT",
    "RUST_LOG",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "GCONV_PATH",
];

impl EnvName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EnvName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for EnvName {
    type Error = InvalidEnvName;
    fn try_from(text: String) -> Result<Self, InvalidEnvName> {
        let mut bytes = text.bytes();
        let first = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
        if !first || text.len() > 253 || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return Err(InvalidEnvName::Form);
        }
        // Proxy variables are read in either case by common libraries.
        let upper = text.to_ascii_uppercase();
        let reserved =
            RESERVED_PREFIXES.iter().any(|p| upper.starts_with(p)) || RESERVED_NAMES.contains(&upper.as_str());
        if reserved {
            Err(InvalidEnvName::Reserved)
        } else {
            Ok(Self(text))
        }
    }
}

impl<'de> Deserialize<'de> for EnvName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.try_into().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_short_and_free_of_controls() {
        assert!("ticket-triage ✓".parse::<Name>().is_ok());
        assert!("é".repeat(200).parse::<Name>().is_ok());
        assert_eq!("é".repeat(201).parse::<Name>(), Err(InvalidName::TooLong));
        assert_eq!("".parse::<Name>(), Err(InvalidName::Empty));
        for bad in [" a", "a ", "a\nb", "a\0b", "a\u{2028}b", "a\u{85}b", "\u{7f}"] {
            assert_eq!(bad.parse::<Name>(), Err(InvalidName::Forbidden), "{bad:?}");
        }
    }

    #[test]
    fn reserved_destinations_are_refused_in_either_case() {
        for bad in ["OPENAI_API_KEY", "https_proxy", "PATH", "LD_PRELOAD", "OPENCLAW_X"] {
            assert_eq!(
                EnvName::try_from(bad.to_owned()),
                Err(InvalidEnvName::Reserved),
                "{bad}"
            );
        }
        assert_eq!(EnvName::try_from("1A".to_owned()), Err(InvalidEnvName::Form));
        assert!(EnvName::try_from("SLACK_BOT_TOKEN".to_owned()).is_ok());
    }
}
