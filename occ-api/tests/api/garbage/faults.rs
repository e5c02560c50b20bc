//! What is wrong with bodies that are wrong.

use serde_json::Value;

use super::sample;

/// In the place of a value: no value of this API's JSON.
fn values() -> Vec<(&'static str, Vec<u8>)> {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)).into_bytes();
    let digits = |count: usize| vec![b'9'; count];
    let mut all: Vec<(&str, Vec<u8>)> = vec![
        ("arrays of depth 65", nested(65)),
        ("arrays of depth 20,000", nested(20_000)),
        ("objects of depth 65", objects(65)),
        ("objects of depth 8,000", objects(8_000)),
        ("depth without an end", vec![b'['; 40_000]),
        ("a number of 400 digits", digits(400)),
        ("a number of 50,000 digits", digits(50_000)),
    ];
    let texts: [(&str, &[u8]); 28] = [
        ("an exponent of 999", b"1e999"),
        ("a negative exponent number out of range", b"-1e999"),
        ("an exponent that is a huge number", b"1e99999999999999999999"),
        ("NaN", b"NaN"),
        ("Infinity", b"-Infinity"),
        ("a number with a leading zero", b"01"),
        ("a hexadecimal number", b"0x10"),
        ("a number without its fraction", b"1."),
        ("half a word", b"tru"),
        ("a leading surrogate", br#""\ud800""#),
        ("a trailing surrogate", br#""a\udc00""#),
        ("surrogates the wrong way round", br#""\udc00\ud800""#),
        ("half an escape of a surrogate", br#""\ud8""#),
        ("a surrogate in bytes", b"\"\xed\xa0\x80\""),
        ("NUL, escaped", br#""a\u0000b""#),
        ("NUL, as it is", b"\"a\0b\""),
        ("a line break within a text", b"\"a\nb\""),
        ("bytes that are no UTF-8", b"\"\xff\xfe\""),
        ("an overlong encoding", b"\"\xc0\xaf\""),
        ("an escape that is none", br#""\x41""#),
        ("a text without its end", b"\"abc"),
        ("a text in apostrophes", b"'a'"),
        ("a comment", b"/* 1 */ 1"),
        ("nothing", b","),
        ("a key twice", br#"{"a":1,"b":2,"a":3}"#),
        ("a key with NUL", br#"{"a\u0000":1}"#),
        ("a key with half a surrogate", br#"{"\ud800":1}"#),
        ("a key that is no text", b"{1:1}"),
    ];
    all.extend(texts.map(|(name, bytes)| (name, bytes.to_vec())));
    all
}

/// In the place of a whole body.
fn wholes(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    let text_of = |bytes: &[u8]| bytes.to_vec();
    vec![
        ("no body", Vec::new()),
        ("white space", text_of(b" \t\r\n")),
        ("words", text_of(b"nonsense")),
        ("the beginning of an object", text_of(b"{")),
        ("half of a body", text.as_bytes()[..text.len() / 2].to_vec()),
        ("all but its last byte", text.as_bytes()[..text.len() - 1].to_vec()),
        ("something after it", format!("{text} x").into_bytes()),
        ("NUL after it", format!("{text}\0").into_bytes()),
        ("another one after it", format!("{text}{text}").into_bytes()),
        ("a comma after it", format!("{text},").into_bytes()),
        ("a byte order mark", format!("\u{feff}{text}").into_bytes()),
        ("UTF-16", utf16(text)),
        ("a list of it", format!("[{text}]").into_bytes()),
        ("it as a text", Value::String(text.to_owned()).to_string().into_bytes()),
        ("null", text_of(b"null")),
        ("true", text_of(b"true")),
        ("a number", text_of(b"7")),
        ("form fields", text_of(b"name=a&value=b")),
        (
            "XML",
            text_of(b"<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>"),
        ),
        (
            "compressed bytes",
            text_of(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xab\xae\x05\x00\x43\xbf\xa6\xa3"),
        ),
    ]
}

/// Bodies that are none, made of one that is: all of what can be wrong with a body, with a value of its own, and with a value of each
/// place in turn.
pub fn of(body: &Value) -> Vec<(String, Vec<u8>)> {
    let text = body.to_string();
    let mut all: Vec<_> = wholes(&text)
        .into_iter()
        .map(|(name, bytes)| (name.to_owned(), bytes))
        .collect();
    let mut stranger = body.clone();
    stranger["stranger"] = Value::Null;
    all.push((
        "a field that it does not have".to_owned(),
        stranger.to_string().into_bytes(),
    ));
    let faults = values();
    for (name, bytes) in &faults {
        all.push((
            format!("{name} at /stranger"),
            sample::with(&stranger, "/stranger", bytes),
        ));
    }
    let mut turns = faults.iter().cycle();
    for place in sample::leaves(body) {
        for (name, bytes) in turns.by_ref().take(5) {
            all.push((format!("{name} at {place}"), sample::with(body, &place, bytes)));
        }
        let (before, key) = place.rsplit_once('/').expect("a place in something");
        if let Some(fields) = body.pointer(before).and_then(Value::as_object) {
            let twice = doubled(fields.iter(), key);
            let whole = if before.is_empty() {
                twice
            } else {
                sample::with(body, before, &twice)
            };
            all.push((format!("{place} twice"), whole));
        }
    }
    all
}

/// An object one of whose fields is there twice.
fn doubled<'a>(fields: impl Iterator<Item = (&'a String, &'a Value)>, key: &str) -> Vec<u8> {
    let mut written: Vec<_> = fields
        .map(|(name, value)| format!("{}:{value}", Value::from(name.as_str())))
        .collect();
    written.push(format!("{}:null", Value::from(key)));
    format!("{{{}}}", written.join(",")).into_bytes()
}

#[test]
fn every_fault_is_put_into_some_body() {
    let body = serde_json::json!({ "a": "b" });
    let all = of(&body);
    let still_sound = |bytes: &[u8]| {
        let value = serde_json::from_slice::<Value>(bytes);
        value.is_ok_and(|value| value == body)
    };
    let sound: Vec<_> = all.iter().filter(|(_, bytes)| still_sound(bytes)).collect();
    assert!(all.len() > 60 && sound.is_empty(), "{sound:?}");
}
