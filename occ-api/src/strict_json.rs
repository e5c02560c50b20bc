//! JSON as this API takes it: no duplicate key, no NUL, no unpaired surrogate, no deep nesting, nothing after the value.
//!
//! Faults are reported as a JSON pointer and a code; the value at fault is repeated nowhere.

use std::{cell::RefCell, fmt, fmt::Write as _};

use occ_core::admission::{Detail, DetailCode, Refusal};
use serde::{
    Deserializer,
    de::{DeserializeOwned, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// Deepest nesting of objects and arrays.
const MAX_DEPTH: usize = 64;

const INVALID: &str = "The request body is not valid.";

/// Reads a request's body into its type.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let value = value(bytes)?;
    if !value.is_object() {
        return Err(Refusal::invalid(INVALID).at("", DetailCode::InvalidType));
    }
    if value.get("modelApiKey").is_some() {
        return Err(Refusal::invalid("modelApiKey is not accepted: use harnessAuth.")
            .at("/modelApiKey", DetailCode::UnknownField));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let mut path = String::new();
        for segment in error.path() {
            match segment {
                serde_path_to_error::Segment::Seq { index } => {
                    let _ = write!(path, "/{index}");
                }
                serde_path_to_error::Segment::Map { key } => push(&mut path, key),
                serde_path_to_error::Segment::Enum { .. } | serde_path_to_error::Segment::Unknown => {}
            }
        }
        let (field, code) = classify(&error.inner().to_string());
        // An unknown field is reported at itself, a missing one below its object.
        if let Some(field) = field.filter(|_| code == DetailCode::Required) {
            push(&mut path, &field);
        }
        Refusal::invalid(INVALID).at(&path, code)
    })
}

/// What serde's message says, without the value that it may quote.
fn classify(message: &str) -> (Option<String>, DetailCode) {
    let named = || message.split('`').nth(1).map(str::to_owned);
    if message.starts_with("unknown field") {
        (named(), DetailCode::UnknownField)
    } else if message.starts_with("missing field") {
        (named(), DetailCode::Required)
    } else if message.starts_with("invalid type") {
        (None, DetailCode::InvalidType)
    } else if message.starts_with("expected an id") || message.starts_with("expected a moment") {
        (None, DetailCode::InvalidFormat)
    } else if message.contains("at most") || message.contains("must fit") {
        (None, DetailCode::TooLong)
    } else {
        (None, DetailCode::InvalidValue)
    }
}

fn push(path: &mut String, key: &str) {
    let _ = write!(path, "/{}", key.replace('~', "~0").replace('/', "~1"));
}

/// Parses the text, strictly.
fn value(bytes: &[u8]) -> Result<Value, Refusal> {
    let fault = RefCell::new(None);
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let seed = Strict {
        path: &Path {
            parent: None,
            step: Step::Root,
        },
        depth: 0,
        fault: &fault,
    };
    let parsed = seed
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value));
    parsed.map_err(|error| {
        if let Some(Detail { path, code }) = fault.take() {
            return Refusal::invalid(INVALID).at(&path, code);
        }
        let message = error.to_string();
        let code = if message.contains("hex escape") || message.contains("number out of range") {
            DetailCode::InvalidValue
        } else if message.contains("recursion limit") {
            DetailCode::TooDeep
        } else {
            DetailCode::InvalidFormat
        };
        let text = if code == DetailCode::InvalidFormat {
            "The request body is not valid JSON."
        } else {
            INVALID
        };
        Refusal::invalid(text).at("", code)
    })
}

/// Where the parser is; built only as deep as the text is nested, written out only for a fault.
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl Path<'_> {
    fn text(&self) -> String {
        let mut path = self.parent.map(Path::text).unwrap_or_default();
        match self.step {
            Step::Root => {}
            Step::Key(key) => push(&mut path, key),
            Step::Index(index) => {
                let _ = write!(path, "/{index}");
            }
        }
        path
    }
}

struct Strict<'a> {
    path: &'a Path<'a>,
    depth: usize,
    fault: &'a RefCell<Option<Detail>>,
}

impl Strict<'_> {
    fn refuse<E: serde::de::Error>(&self, path: &Path<'_>, code: DetailCode) -> E {
        self.fault.borrow_mut().get_or_insert_with(|| Detail {
            path: path.text(),
            code,
        });
        E::custom("refused")
    }

    fn enter<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth < MAX_DEPTH {
            Ok(())
        } else {
            Err(self.refuse(self.path, DetailCode::TooDeep))
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| self.refuse(self.path, DetailCode::InvalidValue))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        if value.contains('\0') {
            return Err(self.refuse(self.path, DetailCode::InvalidFormat));
        }
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut array = Vec::new();
        loop {
            let path = Path {
                parent: Some(self.path),
                step: Step::Index(array.len()),
            };
            let child = Strict {
                path: &path,
                depth: self.depth + 1,
                fault: self.fault,
            };
            match items.next_element_seed(child)? {
                Some(item) => array.push(item),
                None => return Ok(Value::Array(array)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let path = Path {
                parent: Some(self.path),
                step: Step::Key(&key),
            };
            if key.contains('\0') {
                return Err(self.refuse(&path, DetailCode::InvalidFormat));
            }
            if object.contains_key(&key) {
                return Err(self.refuse(&path, DetailCode::InvalidValue));
            }
            let value = entries.next_value_seed(Strict {
                path: &path,
                depth: self.depth + 1,
                fault: self.fault,
            })?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &[u8]) -> (String, DetailCode) {
        let refusal = value(text).expect_err("refused");
        let detail = refusal.details()[0].clone();
        (detail.path, detail.code)
    }

    #[test]
    fn each_fault_has_its_place_and_code() {
        let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
        let very_deep = "[".repeat(100_000);
        let cases: [(&[u8], &str, DetailCode); 12] = [
            (br#"{"a":{"b":1,"b":2}}"#, "/a/b", DetailCode::InvalidValue),
            (br#"{"a":["x\u0000"]}"#, "/a/0", DetailCode::InvalidFormat),
            (br#"{"a\u0000b":1}"#, "/a\0b", DetailCode::InvalidFormat),
            (br#"{"a":"\ud800"}"#, "", DetailCode::InvalidValue),
            (br#"{"a":"\udc00x"}"#, "", DetailCode::InvalidValue),
            (br#"{"a":1e999}"#, "", DetailCode::InvalidValue),
            (br#"{"a":1} x"#, "", DetailCode::InvalidFormat),
            (br#"{"a":NaN}"#, "", DetailCode::InvalidFormat),
            (b"\xff", "", DetailCode::InvalidFormat),
            (b"", "", DetailCode::InvalidFormat),
            (deep.as_bytes(), &"/0".repeat(64), DetailCode::TooDeep),
            (very_deep.as_bytes(), &"/0".repeat(64), DetailCode::TooDeep),
        ];
        for (text, path, code) in cases {
            assert_eq!(
                fault(text),
                (path.to_owned(), code),
                "{}",
                String::from_utf8_lossy(&text[..text.len().min(40)])
            );
        }
    }

    #[test]
    fn sound_values_are_read_as_they_are() {
        let text = br#"{"a":[1,-2,1.5,true,null,"\ud83d\ude00"],"":{}}"#;
        assert_eq!(value(text).ok(), serde_json::from_slice(text).ok());
    }
}
