//! What no HTTP client sends, written to the socket by hand.

use std::fmt::Write as _;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{
    Ground, PATIENCE,
    routes::{Route, routes, taking},
    sample::Sampler,
};

/// The head of a request to a route, with these lines, from somebody who may do everything. The connection is to end with it.
pub fn head(ground: &Ground, route: &Route, lines: &str) -> String {
    let request = ground.request(route).build().expect("a request");
    let mut head = format!(
        "{} {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
        route.method,
        request.url().path(),
        ground.served.address
    );
    // They say who asks.
    for (name, value) in request.headers() {
        let _ = write!(head, "{name}: {}\r\n", value.to_str().expect("text"));
    }
    format!("{head}{lines}\r\n")
}

/// The statuses of the answers, but for what only says that one may go on.
pub fn statuses(answer: &str) -> Vec<u16> {
    let lines = answer.split("HTTP/1.1 ").skip(1);
    let statuses = lines.filter_map(|line| line.split(' ').next()?.parse().ok());
    statuses.filter(|status| *status != 100).collect()
}

/// Whether the caller says that nothing more comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    Says,
    Waits,
}

/// All that the server answers to these bytes until it ends the connection.
async fn exchange(ground: &Ground, case: &str, bytes: &[u8], ends: Ends) -> String {
    let mut stream = TcpStream::connect(ground.served.address).await.expect("a connection");
    let mut answer = Vec::new();
    let whole = async {
        // The server may have enough before it has read everything.
        let _ = stream.write_all(bytes).await;
        if ends == Ends::Says {
            let _ = stream.shutdown().await;
        }
        let _ = stream.read_to_end(&mut answer).await;
    };
    timeout(PATIENCE, whole)
        .await
        .unwrap_or_else(|_| panic!("{case}: it hangs"));
    String::from_utf8_lossy(&answer).into_owned()
}

/// Whatever is answered, nothing was done, nothing failed and nothing is written.
async fn nothing_comes_of(ground: &mut Ground, case: &str, bytes: &[u8], ends: Ends) -> Vec<u16> {
    let answer = exchange(ground, case, bytes, ends).await;
    let statuses = statuses(&answer);
    assert!(
        statuses.iter().all(|status| (400..500).contains(status)),
        "{case}: {answer}"
    );
    ground.unmoved(case).await;
    statuses
}

#[tokio::test]
#[allow(clippy::too_many_lines, reason = "most of it is a table")]
async fn a_body_that_lies_about_itself_is_refused_by_every_route_and_writes_nothing() {
    let mut ground = Ground::new().await;
    let document = occ_api::openapi();
    for (route, body) in taking() {
        let sampler = Sampler {
            document: &document,
            named: &ground.named,
        };
        let sound = sampler.body(&body.schema).to_string();
        let length = sound.len();
        let (half, most) = (&sound[..length / 2], &sound[..length - 1]);
        let chunked = "transfer-encoding: chunked\r\n";
        let cases = [
            (
                "more announced than comes",
                format!("content-length: {}\r\n", length + 1),
                sound.clone(),
            ),
            (
                "far more announced than comes",
                format!("content-length: {}\r\n", body.limit),
                half.to_owned(),
            ),
            (
                "less announced than comes",
                format!("content-length: {}\r\n", length - 1),
                sound.clone(),
            ),
            (
                "two lengths",
                format!("content-length: {length}\r\ncontent-length: {}\r\n", length + 1),
                sound.clone(),
            ),
            (
                "a list of lengths",
                format!("content-length: {length}, {}\r\n", length + 1),
                sound.clone(),
            ),
            ("a negative length", "content-length: -1\r\n".to_owned(), sound.clone()),
            (
                "a length with a sign",
                format!("content-length: +{length}\r\n"),
                sound.clone(),
            ),
            (
                "a hexadecimal length",
                format!("content-length: 0x{length:x}\r\n"),
                sound.clone(),
            ),
            (
                "a length in words",
                "content-length: all of it\r\n".to_owned(),
                sound.clone(),
            ),
            ("no length", "content-length:\r\n".to_owned(), sound.clone()),
            (
                "a length that no number holds",
                "content-length: 18446744073709551616\r\n".to_owned(),
                sound.clone(),
            ),
            ("neither a length nor chunks", String::new(), sound.clone()),
            (
                "a length beside chunks",
                format!("content-length: {length}\r\n{chunked}"),
                sound.clone(),
            ),
            ("chunks that are none", chunked.to_owned(), sound.clone()),
            (
                "a chunk without a size",
                chunked.to_owned(),
                format!("\r\n{sound}\r\n0\r\n\r\n"),
            ),
            (
                "a chunk of a size that is none",
                chunked.to_owned(),
                format!("zz\r\n{sound}\r\n0\r\n\r\n"),
            ),
            (
                "a chunk of a negative size",
                chunked.to_owned(),
                format!("-1\r\n{sound}\r\n0\r\n\r\n"),
            ),
            (
                "a chunk of a huge size",
                chunked.to_owned(),
                format!("ffffffffffffffff\r\n{sound}\r\n0\r\n\r\n"),
            ),
            (
                "a chunk of a size that no number holds",
                chunked.to_owned(),
                format!("fffffffffffffffff1\r\n{sound}\r\n0\r\n\r\n"),
            ),
            (
                "a chunk that breaks off",
                chunked.to_owned(),
                format!("{length:x}\r\n{most}"),
            ),
            (
                "a chunk longer than it says",
                chunked.to_owned(),
                format!("{:x}\r\n{sound}\r\n0\r\n\r\n", length - 1),
            ),
            (
                "chunks without an end",
                chunked.to_owned(),
                format!("{length:x}\r\n{sound}\r\n"),
            ),
            (
                "chunks and garbage for their end",
                chunked.to_owned(),
                format!("{length:x}\r\n{sound}\r\n\0\x01\r\n\r\n"),
            ),
            (
                "an encoding that is none",
                "transfer-encoding: gzip\r\n".to_owned(),
                sound.clone(),
            ),
            (
                "an encoding twice",
                "transfer-encoding: chunked, gzip\r\n".to_owned(),
                sound.clone(),
            ),
            (
                "an announcement and no body",
                format!("content-length: {length}\r\nexpect: 100-continue\r\n"),
                String::new(),
            ),
            (
                "an expectation that nobody meets",
                format!("content-length: {length}\r\nexpect: a miracle\r\n"),
                half.to_owned(),
            ),
        ];
        for (case, lines, bytes) in cases {
            let case = format!("{} {} with {case}", route.method, route.template);
            let head = head(&ground, &route, &format!("content-type: application/json\r\n{lines}"));
            nothing_comes_of(&mut ground, &case, format!("{head}{bytes}").as_bytes(), Ends::Says).await;
        }
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_before_it_is_sent_and_in_chunks() {
    let mut ground = Ground::new().await;
    for (route, body) in taking() {
        let json = "content-type: application/json\r\n";
        let length = body.limit + 1;
        let announced = head(&ground, &route, &format!("{json}content-length: {length}\r\n"));
        let waiting = head(
            &ground,
            &route,
            &format!("{json}content-length: {length}\r\nexpect: 100-continue\r\n"),
        );
        let huge = head(
            &ground,
            &route,
            &format!("{json}content-length: 18446744073709551613\r\n"),
        );
        let chunks = format!(
            "{}{length:x}\r\n{}\r\n0\r\n\r\n",
            head(&ground, &route, &format!("{json}transfer-encoding: chunked\r\n")),
            " ".repeat(length)
        );
        for (case, bytes) in [
            ("announced", announced),
            ("that waits", waiting),
            ("of all that a number holds", huge),
            ("in chunks", chunks),
        ] {
            let case = format!("{} {} with too long a body {case}", route.method, route.template);
            let statuses = nothing_comes_of(&mut ground, &case, bytes.as_bytes(), Ends::Waits).await;
            assert_eq!(statuses, [413], "{case}");
        }
    }
}

#[tokio::test]
async fn garbage_behind_a_request_in_its_connection_is_refused_by_every_route_and_writes_nothing() {
    let mut ground = Ground::new().await;
    for route in routes() {
        if route.is_deaf() || route.is_callback() {
            continue;
        }
        let unsound = if route.body.is_some() {
            "{"
        } else {
            "nothing that it takes"
        };
        let lines = format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            unsound.len()
        );
        let request = format!("{}{unsound}", head(&ground, &route, &lines));
        let open = request.replace("connection: close\r\n", "");
        for (case, bytes) in [
            ("bytes", format!("{open}\0\x01\x02GARBAGE\r\n\r\n")),
            ("half a request", format!("{open}{}", &open[..open.len() / 2])),
            (
                "two more of it and TLS",
                format!("{open}{open}{open}\x16\x03\x01\x02\0\x01\0\x01"),
            ),
            ("HTTP/2", format!("{open}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")),
        ] {
            let case = format!("{} {} and {case} behind it", route.method, route.template);
            nothing_comes_of(&mut ground, &case, bytes.as_bytes(), Ends::Says).await;
        }
    }
}

#[tokio::test]
async fn what_is_no_request_at_all_is_no_failure_and_writes_nothing() {
    let mut ground = Ground::new().await;
    let (route, _) = taking()
        .into_iter()
        .find(|(route, _)| route.template == "/namespaces")
        .expect("a route");
    let body = r#"{"name":"another"}"#;
    let lines = |more: &str| {
        format!(
            "content-type: application/json\r\n{more}content-length: {}\r\n",
            body.len()
        )
    };
    let sound = format!("{}{body}", head(&ground, &route, &lines("")));
    let with = |more: &str| format!("{}{body}", head(&ground, &route, &lines(more)));
    let many = "x-many: a\r\n".repeat(200);
    let cases: [(&str, Vec<u8>); 22] = [
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        (
            "HTTP/2",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
        ),
        ("HTTP/0.9", b"GET /namespaces\r\n".to_vec()),
        ("HTTP/9.9", sound.replace("HTTP/1.1", "HTTP/9.9").into_bytes()),
        ("no version", sound.replace(" HTTP/1.1", "").into_bytes()),
        ("NUL", b"\0\0\0\0\r\n\r\n".to_vec()),
        ("line breaks", b"\r\n\r\n\r\n\r\n\n\n".to_vec()),
        ("nothing", Vec::new()),
        (
            "a method that is none",
            sound.replacen("POST", "P\x01ST", 1).into_bytes(),
        ),
        (
            "a path with a space",
            sound.replacen("/namespaces", "/name spaces", 1).into_bytes(),
        ),
        (
            "a path in bytes",
            sound.replacen("/namespaces", "/namespaces\u{7f}", 1).into_bytes(),
        ),
        (
            "a path of 300,000 bytes",
            sound
                .replacen("/namespaces", &format!("/{}", "a".repeat(300_000)), 1)
                .into_bytes(),
        ),
        (
            "a query in bytes",
            sound
                .replacen("/namespaces", "/namespaces?\u{e9}=\u{e9}", 1)
                .into_bytes(),
        ),
        ("half a head", sound.as_bytes()[..60].to_vec()),
        ("a header without a name", with(": a\r\n").into_bytes()),
        ("a header without a colon", with("nonsense\r\n").into_bytes()),
        ("a header with a space in its name", with("x y: a\r\n").into_bytes()),
        ("a header with NUL", with("x: a\0b\r\n").into_bytes()),
        (
            "a header with a line break of its own",
            with("x: a\rb\r\n").into_bytes(),
        ),
        (
            "a header that goes on in the next line",
            with("x: a\r\n b\r\n").into_bytes(),
        ),
        ("200 headers", with(&many).into_bytes()),
        (
            "a header of a megabyte",
            with(&format!("x: {}\r\n", "a".repeat(1 << 20))).into_bytes(),
        ),
    ];
    for (case, bytes) in cases {
        nothing_comes_of(&mut ground, case, &bytes, Ends::Says).await;
    }
    // It was the garbage: the same without it is done, and only once.
    let answer = exchange(&ground, "a sound request", sound.as_bytes(), Ends::Waits).await;
    assert_eq!(statuses(&answer), [201], "{answer}");
    assert!(ground.kept.moved().await.contains("namespaces"));
}

#[tokio::test]
async fn a_good_request_before_garbage_in_one_connection_is_done_and_the_garbage_is_not() {
    let mut ground = Ground::new().await;
    let (route, _) = taking()
        .into_iter()
        .find(|(route, _)| route.template == "/namespaces")
        .expect("a route");
    let body = r#"{"name":"another"}"#;
    let lines = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    let good = format!("{}{body}", head(&ground, &route, &lines)).replace("connection: close\r\n", "");
    let garbage = "DELETE /namespaces/\x01 HTTP/1.1\r\n\x00\r\n\r\n";
    let answer = exchange(
        &ground,
        "good, then garbage",
        format!("{good}{garbage}").as_bytes(),
        Ends::Says,
    )
    .await;
    let statuses = statuses(&answer);
    assert_eq!(statuses.first(), Some(&201), "{answer}");
    assert!(
        statuses[1..].iter().all(|status| (400..500).contains(status)),
        "{answer}"
    );
    assert!(ground.kept.moved().await.contains("namespaces"));
    let listed = ground.served.send(reqwest::Method::GET, "/namespaces").await;
    let named = |name: &str| {
        listed
            .data()
            .as_array()
            .into_iter()
            .flatten()
            .filter(|one| one["name"] == name)
            .count()
    };
    assert_eq!(named("another"), 1);
}
