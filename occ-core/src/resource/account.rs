//! What names an account.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, de};

/// An email address as the name of an account: lower case, so that one spelling is one account. It is not proved that mail arrives.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Email(String);

/// A text is not an email address. Never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEmail {
    /// Not `local@domain`, or with a white space or control character.
    #[error("must be an email address")]
    Form,
    /// More than 254 bytes.
    #[error("must be at most 254 bytes")]
    TooLong,
}

impl Email {
    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Email {
    type Err = InvalidEmail;
    fn from_str(text: &str) -> Result<Self, InvalidEmail> {
        let text = text.to_lowercase();
        if text.len() > 254 {
            return Err(InvalidEmail::TooLong);
        }
        let (local, domain) = text.split_once('@').ok_or(InvalidEmail::Form)?;
        let forbidden = |c: char| c.is_whitespace() || c.is_control() || c == '@';
        if local.is_empty() || domain.is_empty() || local.chars().chain(domain.chars()).any(forbidden) {
            return Err(InvalidEmail::Form);
        }
        Ok(Self(text))
    }
}

impl<'de> Deserialize<'de> for Email {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl JsonSchema for Email {
    fn schema_name() -> Cow<'static, str> {
        "Email".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 3, "maxLength": 254, "pattern": "^[^@\\s]+@[^@\\s]+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_spelling() {
        let read = |text: &str| text.parse::<Email>().map(|email| email.to_string());
        assert_eq!(read("Ada@Example.COM"), Ok("ada@example.com".to_owned()));
        for bad in ["", "a", "@", "a@", "@b", "a@b@c", "a b@c", "a@b\n", "a\0@b"] {
            assert_eq!(read(bad), Err(InvalidEmail::Form), "{bad:?}");
        }
        assert_eq!(read(&format!("a@{}", "b".repeat(253))), Err(InvalidEmail::TooLong));
    }
}
