//! The same with the real Node and OpenClaw, which `OCC_NODE` and `OCC_OPENCLAW` name; without them each test is skipped by name.

mod faults;
mod kills;
mod lives;
mod scene;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use scene::Tools;

type Test = fn(&Tools);

const TESTS: [(&str, Test); 9] = [
    (
        "an_agent_lives_from_its_first_deployment_to_its_deletion",
        lives::from_the_first_deployment_to_the_deletion,
    ),
    (
        "what_is_killed_comes_back_once_and_leaves_no_orphan",
        kills::of_the_control_plane_the_gateway_and_the_supervisor,
    ),
    ("a_wrong_key_is_told_from_everything_else", faults::wrong_key),
    ("a_model_that_does_not_exist_is_a_format", faults::model_not_found),
    ("a_rate_limit_is_a_rate_limit", faults::rate_limit),
    ("an_answer_that_cannot_be_read_is_unknown", faults::garbage),
    ("a_model_that_never_answers_times_out", faults::hang),
    ("a_model_server_that_is_not_there_times_out", faults::refused),
    ("a_gateway_that_exits_at_once_shows_its_status", faults::exit),
];

fn main() -> ExitCode {
    let tools = Tools::find();
    if tools.is_none() {
        eprintln!("OCC_NODE and OCC_OPENCLAW are not set: these tests are skipped; ./test e2e sets them");
    }
    let trials = TESTS.map(|(name, test)| {
        let tools = tools.clone();
        let ignored = tools.is_none();
        let run = move || match tools {
            Some(tools) => {
                test(&tools);
                Ok(())
            }
            None => Err("OCC_NODE and OCC_OPENCLAW are not set".into()),
        };
        Trial::test(name, run).with_ignored_flag(ignored)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}
