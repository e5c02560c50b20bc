//! One run over the stores.

use std::{path::Path, sync::Arc};

use crate::{
    Error, Floor, Report, Sizes, StoreKind, StoreReport,
    floor::commits_per_second,
    measure::{admissions, claim_latency, deployments, growth, idle},
    scene::Scene,
};

/// Measures these stores, with files in a directory of their own below `directory`.
pub async fn run(sizes: &Sizes, stores: &[StoreKind], directory: &Path) -> Result<Report, Error> {
    let mut measured = Vec::with_capacity(stores.len());
    for store in stores {
        measured.push(measure(*store, sizes, directory).await?);
    }
    Ok(Report {
        version: 1,
        quick: sizes.quick,
        optimised: !cfg!(debug_assertions),
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        stores: measured,
    })
}

async fn measure(store: StoreKind, sizes: &Sizes, directory: &Path) -> Result<StoreReport, Error> {
    let place = || {
        let made = tempfile::Builder::new().prefix("occ-bench-").tempdir_in(directory);
        made.map_err(|_| Error::Directory {
            path: directory.to_owned(),
        })
    };
    let floor = place()?;
    let before = commits_per_second(store, floor.path(), sizes.floor).await?;

    // Each of the two kinds of admission gets a database of the same size.
    let mut admitted = Vec::new();
    for callers in [1, sizes.callers] {
        let place = place()?;
        let scene = Arc::new(Scene::new(store, place.path(), sizes.agents.min(sizes.admissions)).await?);
        admitted.push(admissions(&scene, sizes.admissions, callers).await?);
    }

    let busy = place()?;
    let scene = Scene::new(store, busy.path(), sizes.agents.min(sizes.deployments)).await?;
    let deployed = deployments(&scene, sizes.deployments).await?;
    let latency = claim_latency(&scene, sizes.latencies).await?;
    let idle = idle(&scene, sizes.idle).await?;
    drop(scene);

    // From the first deployment of all on.
    let growing = place()?;
    let scene = Scene::new(store, growing.path(), sizes.agents).await?;
    let growth = growth(&scene, sizes).await?;

    let after = commits_per_second(store, floor.path(), sizes.floor).await?;
    Ok(StoreReport {
        store,
        floor: Floor {
            commits_per_second_before: before,
            commits_per_second_after: after,
        },
        admissions: admitted,
        deployments: deployed,
        claim_latency: latency,
        idle,
        growth,
    })
}
