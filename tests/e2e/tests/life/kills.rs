//! `kill -9` of everything that can be killed.

use occ_e2e::{Model, Up, document, eventually, within};
use occ_test_support::model_server::Behaviour;

use crate::scene::{DEPLOYMENT, Tools, ends_well, ready};

const KEY: &str = "sk-life-0123456789abcdef";

pub fn of_the_control_plane_the_gateway_and_the_supervisor(tools: &Tools) {
    let model = Model::start(Behaviour::echo(), Some(KEY));
    let mut home = tools.home();
    let mut up = ready(&mut home);
    let draft = home.draft("one", &document(&model.base_url()), KEY, &[]);

    // The control plane: when the version is admitted, when its supervisor runs, when its gateway does.
    let revision = home.deploy(&draft);
    up.kill();
    up = Up::whole(&mut home);
    within(DEPLOYMENT, "a supervisor runs", || {
        (!home.supervisors().is_empty()).then_some(())
    });
    up.kill();
    up = Up::whole(&mut home);
    let gateway = within(DEPLOYMENT, "a gateway runs", || home.gateways().pop());
    up.kill();
    assert!(gateway.lives(), "a workload does not notice");
    up = Up::whole(&mut home);
    ends_well(&home, &draft, &revision);
    assert_eq!(home.gateways()[0].pid, gateway.pid, "it is the same one");
    assert_eq!(home.json(["revision", "list", "one"]).as_array().map(Vec::len), Some(1));

    // The gateway: another one is started, and whoever asks is told.
    gateway.kill();
    eventually("another gateway runs", || {
        home.gateways().into_iter().find(|it| it.pid != gateway.pid)
    });
    let checks = home.json(["agent", "diagnostics", "one"]);
    let failed = checks["checks"]
        .as_array()
        .unwrap()
        .iter()
        .any(|check| check["status"] != "succeeded");
    assert!(failed, "it is noticed: {checks}");
    // The next version does not wait for that one to be ready.
    let revision = home.deploy(&draft);
    ends_well(&home, &draft, &revision);

    // The supervisor: everything below it ends too, what left its session and its group included.
    up.stop();
    home.supervisors()[0].kill();
    eventually("no orphan is left", || home.workload().is_empty().then_some(()));
}
