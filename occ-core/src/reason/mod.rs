//! Closed vocabularies: every reason that a user can see, with its code, its fixed message and its page in `docs/reasons/`.
//!
//! Drivers return evidence; only the engine chooses words from these enums. Nothing that a driver or a provider wrote
//! reaches a response, a log line or an audit record (spec/engine 8).

mod api;
mod failure;
mod pending;
mod preparation;
mod runtime_failure;
mod success;

pub use api::ApiCode;
pub use failure::Failure;
pub use pending::{Dependency, Pending};
pub use preparation::{Preparation, PreparationReason, PreparationStage};
pub use runtime_failure::{Cause, InvalidRuntimeFailure, ProbeStatus, ProcessExit, RuntimeCode, RuntimeFailure, Token};
pub use success::Success;

/// Declares one vocabulary: variants with their wire code and message. After `else`: what a code reads as that is not among them, because
/// another version of this program wrote it.
macro_rules! vocabulary {
    ($(#[$doc:meta])* $name:ident $(else $unknown:ident)? { $($(#[$variant_doc:meta])* $variant:ident = $code:literal, $message:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* #[doc = concat!("`", $code, "`: ", $message)] $variant,)*
        }

        impl $name {
            /// Every variant, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The wire code.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The fixed message: at most 256 characters, never composed from evidence.
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }

            /// The variant with this wire code.
            pub fn from_code(code: &str) -> Option<Self> {
                match code { $($code => Some(Self::$variant),)* _ => None }
            }

            $(
                /// The variant with this wire code, also when another version of this program wrote it.
                pub fn read(code: &str) -> Self {
                    Self::from_code(code).unwrap_or(Self::$unknown)
                }
            )?
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.code())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.code())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($code),*] })
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let code = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::from_code(&code)
                    $(.or(Some(Self::$unknown)))?
                    .ok_or_else(|| serde::de::Error::custom(concat!("not a code of ", stringify!($name))))
            }
        }
    };
}
pub(crate) use vocabulary;

/// Every code with its message, over all vocabularies, sorted; a code that two vocabularies share appears once a message.
pub fn catalogue() -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<_> = Pending::ALL.iter().map(|r| (r.code(), r.message())).collect();
    all.extend(Failure::ALL.iter().map(|r| (r.code(), r.message())));
    all.extend(Success::ALL.iter().map(|r| (r.code(), r.message())));
    all.extend(ApiCode::ALL.iter().map(|r| (r.code(), r.message())));
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_messages_keep_their_form() {
        for (code, message) in catalogue() {
            assert!(
                code.bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'),
                "{code}"
            );
            assert!(
                code.len() <= 64 && (1..=256).contains(&message.chars().count()),
                "{code}"
            );
        }
    }
}
