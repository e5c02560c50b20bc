//! How long one client of the HTTP API waits.

use std::{net::SocketAddr, time::Duration};

use occ_core::control::CreateServiceKey;
use occ_test_support::drivers::World;
use reqwest::{Client, RequestBuilder};
use tokio::{sync::oneshot, time::Instant};

use crate::{Answers, Error, measure::latency, scene::Scene};

/// Reads, and then deployments, one after the other, while no worker runs.
pub(crate) async fn answers(scene: &Scene, samples: usize) -> Result<Answers, Error> {
    let World {
        plane,
        admin,
        namespace,
        ..
    } = &scene.world;
    let input = CreateServiceKey {
        principal_id: admin.principal.clone(),
        name: "bench".parse().map_err(|_| Error::Stuck)?,
        namespace_id: None,
        expires_in: None,
    };
    let key = plane.create_service_key(admin, input).await?;
    let key = key.value.expose_str().unwrap_or_default();

    let listener = occ_api::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let address = listener.local_addr().map_err(|_| Error::Stuck)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let server = tokio::spawn(occ_api::serve(listener, occ_api::router(plane.clone()), async {
        let _ = stopped.await;
    }));

    // Whatever else is built beside this, its client wants a TLS provider even for plain HTTP.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = Client::builder().no_proxy().build()?;
    let agents = format!("http://{address}/namespaces/{namespace}/agents");
    let mut read = Vec::with_capacity(samples);
    let mut deploy = Vec::with_capacity(samples);
    for number in 0..samples {
        let agent = format!("{agents}/{}", scene.agent(number));
        read.push(waited(http.get(agent).header("x-api-key", key)).await?);
    }
    // The first deployment of an Agent makes its credentials as well.
    for agent in &scene.agents {
        scene.admit(*agent).await?;
    }
    for number in 0..samples {
        let agent = format!("{agents}/{}/deploy", scene.agent(number));
        deploy.push(waited(http.post(agent).header("x-api-key", key)).await?);
    }
    drop(stop);
    let _ = server.await;
    scene.forget();
    Ok(Answers {
        read: latency(read),
        deploy: latency(deploy),
    })
}

async fn waited(request: RequestBuilder) -> Result<Duration, Error> {
    let begun = Instant::now();
    request.send().await?.error_for_status()?.bytes().await?;
    Ok(begun.elapsed())
}
