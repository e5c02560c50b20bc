//! Typed identifiers: a prefix and a lowercase UUID version 4 (spec/engine 1.1).
//!
//! An id is parsed once, at the edge. Inside, a [`NamespaceId`] cannot stand where an [`AgentId`] is wanted.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use uuid::{Uuid, Variant};

/// Why a text is not an id of the wanted kind. Never holds the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an id of the form {prefix}<lowercase UUID v4>")]
pub struct InvalidId {
    /// The prefix of the wanted kind, with its underscore.
    pub prefix: &'static str,
}

fn parse(prefix: &'static str, text: &str) -> Result<Uuid, InvalidId> {
    let invalid = InvalidId { prefix };
    let body = text.strip_prefix(prefix).ok_or(invalid)?;
    // `Uuid` also reads upper case, braces and the short form; ids have one spelling.
    let uuid = Uuid::try_parse(body).map_err(|_| invalid)?;
    let exact = uuid.get_version_num() == 4 && uuid.get_variant() == Variant::RFC4122;
    if exact && uuid.hyphenated().to_string() == body {
        Ok(uuid)
    } else {
        Err(invalid)
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// The prefix of this kind of id, with its underscore.
            pub const PREFIX: &'static str = $prefix;

            /// A fresh random id.
            pub fn random() -> Self {
                Self(crate::randomness::uuid())
            }

            /// The id's UUID, without its prefix.
            pub const fn uuid(self) -> Uuid {
                self.0
            }

            /// First twelve hexadecimal digits of the SHA-256 of the id: short, stable object names (spec/drivers, notation).
            pub fn short_hash(self) -> String {
                crate::digest::short(self.to_string().as_bytes())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0.hyphenated())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                parse($prefix, text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Cow::<'de, str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "string",
                    "pattern": concat!(
                        "^", $prefix,
                        "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
                    ),
                })
            }
        }
    )*};
}

ids! {
    /// An Installation; exactly one exists in a database.
    InstallationId = "ins_";
    /// A Namespace: the owner of every tenant resource.
    NamespaceId = "ns_";
    /// A Configuration: a reusable native document.
    ConfigurationId = "cfg_";
    /// A Secret: a reference to bytes that a Secret Driver keeps.
    SecretId = "sec_";
    /// A ServiceAccount.
    ServiceAccountId = "sa_";
    /// A Preset: launch settings under a name.
    PresetId = "pre_";
    /// A CredentialSource.
    CredentialSourceId = "cs_";
    /// An Agent (the editable draft and its identity).
    AgentId = "agt_";
    /// An immutable AgentRevision; also the deployment id.
    RevisionId = "rev_";
    /// An audit event.
    AuditId = "aud_";
    /// One request to the API; also the `x-request-id` header.
    RequestId = "req_";
    /// A service key (its public half; the secret half is shown once).
    ServiceKeyId = "key_";
    /// A session of a person (its public half; the secret half is in the cookie alone).
    SessionId = "ses_";
    /// A token of an Agent.
    AgentTokenId = "tok_";
    /// A key that signs tokens of Agents.
    AgentTokenKeyId = "atk_";
}

#[cfg(feature = "engine")]
impl CredentialSourceId {
    /// The id of this UUID, which is of version 4.
    pub(crate) const fn of(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_it_was_written() {
        let id = AgentId::random();
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn one_spelling_only() {
        let good = "agt_123e4567-e89b-42d3-a456-426614174000";
        assert!(good.parse::<AgentId>().is_ok());
        for bad in [
            "ns_123e4567-e89b-42d3-a456-426614174000",
            "agt_123E4567-e89b-42d3-a456-426614174000",
            "agt_123e4567e89b42d3a456426614174000",
            "agt_{123e4567-e89b-42d3-a456-426614174000}",
            "agt_123e4567-e89b-12d3-a456-426614174000",
            "agt_123e4567-e89b-42d3-c456-426614174000",
            "agt_123e4567-e89b-42d3-a456-426614174000 ",
            "agt_",
            "",
        ] {
            assert_eq!(bad.parse::<AgentId>(), Err(InvalidId { prefix: "agt_" }), "{bad}");
        }
    }
}
