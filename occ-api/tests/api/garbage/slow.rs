//! Callers that keep the server waiting, in virtual time.

use std::{net::SocketAddr, time::Duration};

use futures_util::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::Instant,
};

use super::{Ground, routes::taking, wire};

/// A byte each second, until the server has had enough of it: what it answered.
async fn drip(address: SocketAddr, begun: String, byte: u8) -> String {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut reader, mut writer) = stream.into_split();
    writer.write_all(begun.as_bytes()).await.expect("it is taken");
    let drips = async {
        while writer.write_all(&[byte]).await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = Vec::new();
    tokio::select! {
        _ = reader.read_to_end(&mut answer) => {}
        () = drips => {}
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_body_that_drips_is_refused_by_every_route_after_half_a_minute_and_writes_nothing() {
    let mut ground = Ground::new().await;
    let address = ground.served.address;
    let routes = taking();
    tokio::time::pause();
    let begun = Instant::now();
    let answers = routes.iter().map(|(route, _)| {
        let head = wire::head(
            &ground,
            route,
            "content-type: application/json\r\ncontent-length: 1000\r\n",
        );
        drip(address, format!("{head}{{"), b' ')
    });
    let answers = join_all(answers).await;
    let took = begun.elapsed();
    tokio::time::resume();
    assert!(took < Duration::from_secs(32), "{took:?}");
    for ((route, _), answer) in routes.iter().zip(answers) {
        assert_eq!(
            wire::statuses(&answer),
            [400],
            "{} {}: {answer}",
            route.method,
            route.template
        );
    }
    ground.unmoved("dripping bodies").await;
}

#[tokio::test]
async fn a_head_that_drips_is_not_waited_for_for_ever() {
    let ground = Ground::new().await;
    let address = ground.served.address;
    tokio::time::pause();
    let begun = Instant::now();
    let heads = ["", "PO", "POST /namespaces HTTP/1.1\r\nx-long: "].map(|head| drip(address, head.to_owned(), b'a'));
    let answers = join_all(heads).await;
    let took = begun.elapsed();
    tokio::time::resume();
    assert!(took < Duration::from_secs(32), "{took:?}");
    for answer in answers {
        let statuses = wire::statuses(&answer);
        assert!(statuses.iter().all(|status| (400..500).contains(status)), "{answer}");
    }
}
