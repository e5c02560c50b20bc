//! Garbage in paths and in queries.

use super::{
    Ground, kept,
    routes::{Route, routes},
};

/// No parameter of anything.
fn strangers() -> Vec<String> {
    let fixed = [
        "x=1",
        "x",
        "=",
        "=1",
        "%",
        "%zz=1",
        "%00=%00",
        "%ff%fe=1",
        "limit[]=1",
        "LIMIT=1",
        "limit%3D1",
        "x=1&x=1",
        "?",
        "a;b=c",
    ];
    let mut all: Vec<_> = fixed.map(str::to_owned).into();
    all.push("x".repeat(20_000));
    all.push("x=1&".repeat(5_000));
    all
}

/// No value of anything, or hardly.
fn values() -> Vec<String> {
    let fixed = [
        "",
        "-1",
        "0",
        "+1",
        "1.5",
        "1e3",
        "0x10",
        "1%31",
        "00001",
        "1001",
        "99999999999999999999999999",
        "NaN",
        "null",
        "true",
        "%",
        "%zz",
        "%00",
        "%ff%fe",
        "%ed%a0%80",
        "%20",
        "%0d%0aset-cookie:x=1",
        "{}",
        "' OR 1=1--",
        "%F0%9F%A6%8A",
        "61s",
        "0s",
        "99999999999999999999s",
    ];
    let mut all: Vec<_> = fixed.map(|value| value.replace(' ', "%20")).into();
    all.push("9".repeat(20_000));
    all
}

/// Ids of nothing.
fn ids() -> Vec<String> {
    let fixed = [
        "x",
        "0",
        "-1",
        "%00",
        "%ff%fe",
        "%ed%a0%80",
        "%",
        "%zz",
        "%20",
        "%0d%0aset-cookie:x=1",
        "%2e%2e%2fetc%2fpasswd",
        "%F0%9F%A6%8A",
        "' OR 1=1--",
        "ns_",
        "NS_123E4567-E89B-42D3-A456-426614174000",
        "role_123e4567-e89b-42d3-a456-426614174000%00",
        "ns_123e4567-e89b-42d3-a456-4266141740000",
    ];
    let mut all: Vec<_> = fixed.map(|value| value.replace(' ', "%20")).into();
    all.push("a".repeat(20_000));
    all
}

/// Whoever is sent it reads its path and query first, and finds no body that is sound.
fn unsound(ground: &Ground, route: &Route, path: &str) -> reqwest::RequestBuilder {
    let request = ground.request_to(route, path);
    if route.body.is_some() {
        request.header("content-type", "application/json").body("{")
    } else {
        request
    }
}

#[tokio::test]
async fn a_query_with_a_stranger_is_refused_by_every_route_and_writes_nothing() {
    let mut ground = Ground::new().await;
    for route in routes() {
        if route.is_deaf() || route.is_callback() {
            continue;
        }
        for query in strangers() {
            let path = format!("{}?{query}", route.path(&ground.named));
            let request = unsound(&ground, &route, &path);
            let case = format!("the query {query:.60}");
            ground.refused(&route, &case, request, &[400]).await;
        }
    }
}

#[tokio::test]
async fn a_value_that_a_query_does_not_take_is_no_failure_and_writes_nothing() {
    let mut ground = Ground::new().await;
    let mut asked = 0;
    for route in routes() {
        for parameter in route.query.iter().filter(|_| !route.is_callback()) {
            let twice = format!("{parameter}=1&{parameter}=1");
            let queries = values().into_iter().map(|value| format!("{parameter}={value}"));
            for query in queries.chain([twice]) {
                let path = format!("{}?{query}", route.path(&ground.named));
                let request = ground.request_to(&route, &path);
                let case = format!("the query {query:.60}");
                let status = ground.answer(&route, &case, request).await;
                assert!(!status.is_server_error(), "{} {case}: {status}", route.template);
                ground.unmoved(&format!("{} {case}", route.template)).await;
                asked += 1;
            }
        }
    }
    assert!(asked > 500, "{asked}");
}

#[tokio::test]
async fn an_id_that_is_none_is_refused_by_every_route_and_writes_nothing() {
    let mut ground = Ground::new().await;
    for route in routes() {
        for place in route.places.clone() {
            for id in ids() {
                let path = route.path_with(&ground.named, &place, &id);
                // Without a body that is none: the id alone is at fault, also where something is taken away.
                let request = unsound(&ground, &route, &path);
                let case = format!("{place} as {id:.60}");
                ground.refused(&route, &case, request, &[400, 404]).await;
            }
        }
    }
}

/// Who comes back from an identity provider without having begun is recorded, and nothing else is.
#[tokio::test]
async fn garbage_from_an_identity_provider_is_recorded_and_nothing_else() {
    let mut ground = Ground::new().await;
    let callback = routes().into_iter().find(Route::is_callback).expect("a callback");
    for query in strangers()
        .into_iter()
        .chain(values().into_iter().map(|value| format!("code={value}&state={value}")))
    {
        let request = ground.request_to(&callback, &format!("{}?{query}", callback.template));
        let status = ground
            .answer(&callback, &format!("the query {query:.60}"), request)
            .await;
        assert!(status.is_client_error(), "{query:.60}: {status}");
        let moved = ground.kept.moved().await;
        let recorded = |table: &String| kept::RECORDS.contains(&table.as_str());
        assert!(moved.iter().all(recorded), "{query:.60}: {moved:?}");
    }
}
