//! Ending a version, and an Agent.

use std::{net::TcpListener, time::Duration};

use occ_core::driver::Stop;
use occ_runtime::identity::ProcessIdentity;
use serde_json::Value;

use crate::scene::{Scene, children, cmdline, kill, suspend, until};

#[tokio::test]
async fn a_stop_leaves_no_process_and_no_port_and_keeps_the_agents_data() {
    let scene = Scene::new().provided().await;
    scene.control("child", true);
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    until(async || scene.processes("sleep").len() == 1).await;
    std::fs::write(scene.agent_dir().join("workspace/AGENTS.md"), "edited").unwrap();
    std::fs::write(scene.agent_dir().join("state/memory"), "kept").unwrap();
    let url = scene.endpoint(&revision).await.unwrap();
    let password = std::fs::read(scene.agent_dir().join("credentials/gateway-password")).unwrap();

    assert_eq!(
        scene.driver.stop_revision(&scene.cx, &revision.target).await,
        Ok(Stop::Draining)
    );
    assert_eq!(scene.endpoint(&revision).await, None, "off the route at once");
    scene.stopped(&revision).await;
    scene.stopped(&revision).await;
    assert!(scene.processes("").is_empty());
    TcpListener::bind(url.strip_prefix("http://").unwrap()).unwrap();
    assert_eq!(
        std::fs::read_to_string(scene.agent_dir().join("workspace/AGENTS.md")).unwrap(),
        "edited"
    );

    scene.control("child", false);
    let next = scene.revision(2);
    scene.deployed(&next).await.unwrap();
    assert_eq!(scene.endpoint(&next).await, Some(url), "the port is kept");
    assert_eq!(
        std::fs::read(scene.agent_dir().join("credentials/gateway-password")).unwrap(),
        password
    );
    assert_eq!(
        std::fs::read_to_string(scene.agent_dir().join("state/memory")).unwrap(),
        "kept"
    );
    scene.stopped(&next).await;
}

#[tokio::test]
async fn a_component_that_does_not_listen_is_killed_after_its_grace() {
    let scene = Scene::with(serde_json::json!({ "stopGraceSeconds": 1 }))
        .provided()
        .await;
    scene.control("deaf", true);
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    assert_eq!(
        scene.driver.stop_revision(&scene.cx, &revision.target).await,
        Ok(Stop::Draining)
    );
    scene.stopped(&revision).await;
    assert!(scene.processes("").is_empty());
}

#[tokio::test]
async fn a_supervisor_that_does_not_end_is_killed_with_its_component() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    suspend(scene.process("supervise"));
    let stop = async || scene.driver.stop_revision(&scene.cx, &revision.target).await;
    assert_eq!(stop().await, Ok(Stop::Draining));
    // Its component's grace is 20 seconds; it is given that and some more, by the engine's clock.
    scene.clock.advance(Duration::from_secs(25));
    assert_eq!(stop().await, Ok(Stop::Draining));
    scene.process("supervise");
    scene.clock.advance(Duration::from_secs(15));
    scene.stopped(&revision).await;
    assert!(scene.processes("").is_empty());
}

#[tokio::test]
async fn a_stop_ends_what_a_killed_supervisor_and_keeper_left() {
    let scene = Scene::new().provided().await;
    scene.control("child", true);
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    until(async || scene.processes("sleep").len() == 1).await;
    let supervisor = scene.process("supervise");
    let both: Vec<u32> = children(supervisor).into_iter().chain([supervisor]).collect();
    // Neither sees the other one's end.
    both.iter().copied().for_each(suspend);
    both.into_iter().for_each(kill);
    until(async || scene.processes("gateway").is_empty()).await;
    assert_eq!(scene.processes("sleep").len(), 1, "nobody ended it");
    assert_eq!(
        scene.driver.stop_revision(&scene.cx, &revision.target).await,
        Ok(Stop::Draining)
    );
    scene.stopped(&revision).await;
    assert!(scene.processes("").is_empty());
}

#[tokio::test]
async fn a_version_that_was_never_prepared_is_stopped_already() {
    let scene = Scene::new();
    let revision = scene.revision(1);
    scene.stopped(&revision).await;
    scene.retired(&revision).await;
    scene.agent_deleted().await;
    assert!(!scene.data().exists(), "looking makes nothing");
    let scene = scene.provided().await;
    scene.stopped(&revision).await;
    scene
        .driver
        .deactivate_revision(&scene.cx, &revision.target)
        .await
        .unwrap();
}

#[tokio::test]
async fn deactivation_takes_the_route_and_leaves_the_workload() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    scene
        .driver
        .deactivate_revision(&scene.cx, &revision.target)
        .await
        .unwrap();
    assert_eq!(scene.endpoint(&revision).await, None);
    assert_eq!(scene.serving().await.as_deref(), Some("1"));
    scene.deployed(&revision).await.unwrap();
    assert!(scene.endpoint(&revision).await.is_some());
    scene.stopped(&revision).await;
}

#[tokio::test]
async fn a_process_that_got_the_supervisors_number_is_never_signalled() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    scene.stopped(&revision).await;

    // A living bystander with the number that the records name, but not the start.
    let mut bystander = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let identity = ProcessIdentity::of(bystander.id()).unwrap();
    let earlier = ProcessIdentity {
        start_time: identity.start_time - 1,
        ..identity
    };
    let forged = serde_json::to_value(&earlier).unwrap();
    std::fs::write(scene.agent_dir().join("lock"), forged.to_string()).unwrap();
    let status = scene.revision_dir(&revision).join("status.json");
    let mut said: Value = serde_json::from_slice(&std::fs::read(&status).unwrap()).unwrap();
    said["supervisor"] = forged;
    said["state"] = serde_json::json!({ "phase": "ready" });
    std::fs::write(&status, said.to_string()).unwrap();
    // Somebody holds the lock, as a supervisor would.
    let lock = std::fs::File::open(scene.agent_dir().join("lock")).unwrap();
    lock.lock().unwrap();

    for _ in 0..3 {
        assert_eq!(
            scene.driver.stop_revision(&scene.cx, &revision.target).await,
            Ok(Stop::Draining)
        );
        assert_eq!(
            scene.driver.delete_agent(&scene.cx, &scene.agent).await,
            Ok(Stop::Draining)
        );
    }
    drop(lock);
    scene.stopped(&revision).await;
    scene.agent_deleted().await;
    assert!(cmdline(bystander.id()).is_some(), "it was left alone");
    assert_eq!(bystander.try_wait().unwrap(), None);
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

#[tokio::test]
async fn a_deleted_agent_leaves_nothing_and_its_namespace_can_go() {
    let scene = Scene::new().provided().await;
    let revision = scene.revision(1);
    scene.deployed(&revision).await.unwrap();
    assert!(
        scene
            .driver
            .delete_namespace(&scene.cx, &scene.namespace)
            .await
            .is_err(),
        "it has an Agent"
    );
    assert_eq!(
        scene.driver.delete_agent(&scene.cx, &scene.agent).await,
        Ok(Stop::Draining)
    );
    scene.agent_deleted().await;
    scene.agent_deleted().await;
    assert!(scene.processes("").is_empty());
    assert!(!scene.agent_dir().exists());
    for _ in 0..2 {
        assert!(
            scene
                .driver
                .delete_namespace(&scene.cx, &scene.namespace)
                .await
                .unwrap()
                .done
        );
    }
    let left: Vec<_> = std::fs::read_dir(scene.data().join("compute/process-1/namespaces"))
        .unwrap()
        .flatten()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_removal_that_was_cut_off_is_finished() {
    let scene = Scene::new().provided().await;
    let agent = scene.agent_dir();
    let name = agent.file_name().unwrap().to_str().unwrap().to_owned();
    std::fs::rename(&agent, agent.with_file_name(format!(".{name}.old"))).unwrap();
    scene.agent_deleted().await;
    assert_eq!(std::fs::read_dir(agent.parent().unwrap()).unwrap().count(), 0);
}
