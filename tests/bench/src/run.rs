//! One run over the stores.

use std::{path::Path, sync::Arc};

use crate::{
    Error, Floor, Load, Report, Rivals, Sizes, StoreKind, StoreReport,
    answers::answers,
    ground::Ground,
    measure::{admissions, claim_latency, deployments, growth, idle},
    scene::Scene,
};

/// Measures these stores, with their databases in a directory of their own below `directory`; beside `PostgreSQL` the rivals, and
/// itself under load.
pub async fn run(
    sizes: &Sizes,
    stores: &[StoreKind],
    directory: &Path,
    rivals: Option<&Rivals>,
    load: &Load,
) -> Result<Report, Error> {
    let mut report = Report {
        version: 3,
        quick: sizes.quick,
        optimised: !cfg!(debug_assertions),
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        stores: Vec::with_capacity(stores.len()),
        rivals: Vec::new(),
        history: Vec::new(),
        pending: None,
    };
    for store in stores {
        let ground = Ground::new(*store, directory)?;
        let measured = Box::pin(measure(*store, sizes, &ground)).await?;
        if let (StoreKind::Postgres, Some(rivals)) = (store, rivals) {
            // At least what was measured: no rival is given less work.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a handful")]
            let steps = measured.deployments.transactions.writes_each.ceil() as usize;
            report.rivals = rivals.measure(&ground, sizes, steps).await?;
        }
        if *store == StoreKind::Postgres {
            report.history = load.histories(&ground, sizes).await?;
            report.pending = Box::pin(load.pending(&ground, sizes)).await?;
        }
        report.stores.push(measured);
    }
    Ok(report)
}

async fn measure(store: StoreKind, sizes: &Sizes, ground: &Ground) -> Result<StoreReport, Error> {
    let before = ground.commits_per_second(sizes.floor).await?;

    // Each number of callers gets a database of the same size.
    let mut admitted = Vec::new();
    for callers in [1, sizes.callers, sizes.crowd] {
        let scene = Arc::new(Scene::new(ground, sizes.agents.min(sizes.admissions)).await?);
        admitted.push(admissions(&scene, sizes.admissions, callers).await?);
    }

    let scene = Scene::new(ground, sizes.agents.min(sizes.answers)).await?;
    let answers = answers(&scene, sizes.answers).await?;

    let scene = Arc::new(Scene::new(ground, sizes.agents.min(sizes.deployments)).await?);
    let deployed = deployments(&scene, sizes.deployments, sizes.callers).await?;
    let latency = claim_latency(&scene, sizes.latencies).await?;
    let idle = idle(&scene, sizes.idle).await?;
    drop(scene);

    // From the first deployment of all on.
    let scene = Scene::new(ground, sizes.agents).await?;
    let growth = growth(&scene, sizes).await?;

    let after = ground.commits_per_second(sizes.floor).await?;
    Ok(StoreReport {
        store,
        floor: Floor {
            commits_per_second_before: before,
            commits_per_second_after: after,
        },
        admissions: admitted,
        answers,
        deployments: deployed,
        claim_latency: latency,
        idle,
        growth,
    })
}
