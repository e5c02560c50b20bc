//! Sound JSON that nobody means.

use super::{Ground, kept, routes::taking, sample, sample::Sampler};

/// Values of every type and of every length.
fn values() -> Vec<String> {
    let fixed = [
        "null",
        "true",
        "[]",
        "{}",
        "-1",
        "0",
        "-0.0",
        "0.1",
        "5e-324",
        "1e308",
        "9007199254740993",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775809",
        r#""""#,
        r#"" ""#,
        r#""\u0001\u001b[31m""#,
        r#""\uffff\ufffe""#,
        r#""\udbff\udfff""#,
        r#""\u202e\u200b\u2028""#,
        r#""e\u0301\u0301\u0301\u0301""#,
        r#""ǆ İ ß ﬀ""#,
        r#""../../etc/passwd""#,
        r#""' OR 1=1; DROP TABLE agents; --""#,
        r#""{{7*7}} ${jndi:x} %s%n""#,
        r#""true""#,
        r#""0""#,
        r#""ns_123e4567-e89b-42d3-a456-426614174000""#,
        r#""NS_123E4567-E89B-42D3-A456-426614174000""#,
        r##"{"":{"":{}},"__proto__":{"a":1},"$ref":"#/"}"##,
        r#"[null,true,0,"",[],{}]"#,
    ];
    let mut all: Vec<_> = fixed.map(str::to_owned).into();
    all.push(format!("\"{}\"", "a".repeat(50_000)));
    all.push(format!("\"{}\"", "🦊".repeat(10_000)));
    all.push(format!("[{}0]", "0,".repeat(20_000)));
    let keys: Vec<_> = (0..3_000).map(|number| format!("\"k{number}\":0")).collect();
    all.push(format!("{{{}}}", keys.join(",")));
    all
}

#[tokio::test]
async fn a_value_that_nobody_means_is_no_failure_and_what_is_refused_is_at_most_recorded() {
    let mut ground = Ground::new().await;
    let document = occ_api::openapi();
    let all = values();
    let mut turns = all.iter().cycle();
    for (route, body) in taking() {
        let sampler = Sampler {
            document: &document,
            named: &ground.named,
        };
        let sound = sampler.body(&body.schema);
        for place in sample::leaves(&sound) {
            for value in turns.by_ref().take(12) {
                let bytes = sample::with(&sound, &place, value.as_bytes());
                let request = ground.request(&route).header("content-type", "application/json");
                let case = format!("{value:.60} at {place}");
                let status = ground.answer(&route, &case, request.body(bytes)).await;
                let case = format!("{} {} with {case}: {status}", route.method, route.template);
                assert!(!status.is_server_error(), "{case}");
                let moved = ground.kept.moved().await;
                let recorded = moved.iter().all(|table| kept::RECORDS.contains(&table.as_str()));
                assert!(status.is_success() || recorded, "{case}: {moved:?}");
            }
        }
    }
}
