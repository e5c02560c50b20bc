//! The command line as a whole.

use clap::{CommandFactory as _, Parser as _, error::ErrorKind};

use crate::{
    Cli, Command,
    exit::{Exit, Failure},
    output::Format,
};

fn parse(line: &str) -> Result<Cli, ErrorKind> {
    Cli::try_parse_from(std::iter::once("occ").chain(line.split_whitespace())).map_err(|error| error.kind())
}

const CONFIGURATION: &str = "cfg_123e4567-e89b-42d3-a456-426614174000";
const KEY: &str = "key_123e4567-e89b-42d3-a456-426614174000";

#[test]
fn the_commands_do_not_contradict_themselves() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_says_what_it_is_for() {
    fn check(command: &clap::Command, path: &str) {
        let path = format!("{path} {}", command.get_name());
        assert!(command.get_about().is_some(), "{path} has no help");
        for argument in command.get_arguments() {
            let id = argument.get_id();
            assert!(argument.get_help().is_some(), "{id} of {path} has no help");
        }
        for sub in command.get_subcommands() {
            check(sub, &path);
        }
    }
    check(&Cli::command(), "");
}

#[test]
fn a_pruning_names_what_goes_and_keeps_what_is_young() {
    for (line, kind) in [
        ("prune", ErrorKind::MissingRequiredArgument),
        ("prune --apply", ErrorKind::MissingRequiredArgument),
        ("prune --work-older-than 30", ErrorKind::ValueValidation),
        ("prune --work-older-than 59m", ErrorKind::ValueValidation),
        ("prune --audit-older-than 23h", ErrorKind::ValueValidation),
        ("prune --audit-older-than -1d", ErrorKind::UnknownArgument),
    ] {
        assert_eq!(parse(line).map(drop), Err(kind), "{line}");
    }
}

#[test]
fn every_documented_command_parses() {
    for line in [
        "up",
        "up --data-dir d --config f --listen 127.0.0.1:0 --log-format json",
        "up --api-only",
        "up --trusted-proxy 10.0.0.0/8,::1 --origin https://occ.example.com",
        "account create ada@example.com --name Ada --principal prn_x --password-file -",
        "account create grace@example.com --name Grace --out grace.code",
        "account list",
        "agent token triage --expires-in 15m --out triage.token",
        "account code grace@example.com --out grace.code",
        "account link grace@example.com --issuer https://accounts.example.com --subject 1234",
        "account unlink grace@example.com",
        "account disable prn_x",
        "account enable grace@example.com",
        "account sign-out grace@example.com",
        "up --worker-only --output json",
        "up --database postgres://occ@127.0.0.1:5432/occ --worker-only",
        "migrate up --database postgres://occ@127.0.0.1/occ",
        "migrate status --data-dir d",
        "backup f --data-dir d",
        "restore f",
        "prune --work-older-than 30d",
        "prune --audit-older-than 365d --work-older-than 12h --apply --data-dir d",
        "prune --audit-older-than 1d --database postgres://occ@127.0.0.1/occ",
        "quickstart --keep",
        "namespace create team --existing x --wait --timeout 90s",
        "namespace list",
        "namespace delete team --wait",
        "configuration create - --bind TOKEN=slack --bind OTHER=x",
        &format!("configuration update {CONFIGURATION} f.yaml --no-bindings"),
        &format!("configuration delete {CONFIGURATION}"),
        "secret create name --file f",
        "secret update name",
        &format!("agent create a --configuration {CONFIGURATION} --mode dedicated --token-secret s"),
        &format!("agent create a --configuration {CONFIGURATION} --mode dedicated --backend b --service-account s"),
        &format!("agent create a --configuration {CONFIGURATION} --api-key-secret s --workspace-file AGENTS.md=f"),
        "agent update a --no-auth --no-backend",
        "agent update a --plugins plugins.json",
        "agent plugins",
        "agent plugins a --details calendar@curated",
        "agent update a --runtime-auth --backend b",
        "agent deploy a --wait --timeout 20m",
        "agent redeploy a 2 --wait",
        "agent create a --preset support",
        "agent deployment-status a",
        "agent deployment-status a 3 --wait",
        "agent stop a --wait",
        "agent delete a",
        "agent logs a 2 --lines 1000 --component gateway",
        "agent diagnostics a",
        "agent credentials a --provision",
        "agent gateway a",
        "agent chat a hello",
        "revision list a",
        "revision show a 1",
        "role create --permission secret:operate --permission agent:read_logs",
        "role delete role_1",
        "access-binding create --agent a --role role_1 --resource secret:s",
        "access-binding create --principal prn_1 --role role_1",
        "service-principal list",
        "key create",
        "key create --data-dir d",
        "key create --principal prn_1 --name ci --expires-in 90d --namespace n --out f",
        &format!("key revoke {KEY}"),
        "installation show",
        "installation backends",
        "audit list --limit 5 --action openclaw.agents.deploy --outcome denied --actor prn_1",
        "audit verify",
        "audit verify --expect 00",
        "service-account create shared --kind api-key --secret s",
        "service-account create bare",
        "service-account set-credential shared --kind oauth-access-token --secret s",
        "service-account issue shared",
        "credential-source register model --type openai --secret api_key=k --set host=h",
        "credential-source list",
        "credential-source show model",
        "credential-source refresh model",
        "credential-source withdraw model --agent a",
        "credential-source withdrawal model --agent a",
        "credential-source delete model",
        "agent update a --credential-source model --source other",
        "agent update a --no-auth --no-sources",
        "service-account delete shared",
        "preset create support --settings f",
        "preset list",
        "installation check --config f",
        "drivers",
        "explain RATE_LIMIT",
    ] {
        assert!(parse(line).is_ok(), "{line}: {:?}", parse(line).err());
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (line, kind) in [
        ("up --api-only --worker-only", ErrorKind::ArgumentConflict),
        ("up --listen localhost", ErrorKind::ValueValidation),
        ("agent create a", ErrorKind::MissingRequiredArgument),
        (
            "agent create a --configuration my-configuration",
            ErrorKind::ValueValidation,
        ),
        (
            "agent update a --runtime-auth --api-key-secret s",
            ErrorKind::ArgumentConflict,
        ),
        (
            "agent update a --no-auth --api-key-secret s",
            ErrorKind::ArgumentConflict,
        ),
        ("agent update a --no-backend --backend b", ErrorKind::ArgumentConflict),
        ("agent deploy a --timeout 1m", ErrorKind::MissingRequiredArgument),
        ("agent logs a --lines 0", ErrorKind::ValueValidation),
        ("agent logs a --component a&b", ErrorKind::ValueValidation),
        (
            "agent create a --workspace-file README.md=f",
            ErrorKind::ValueValidation,
        ),
        ("secret create name value", ErrorKind::UnknownArgument),
        ("secret create name --value v", ErrorKind::UnknownArgument),
        (
            "configuration create f --bind OPENAI_API_KEY=s",
            ErrorKind::ValueValidation,
        ),
        ("role create", ErrorKind::MissingRequiredArgument),
        ("role create --permission secret", ErrorKind::ValueValidation),
        ("role create --permission secret:steal", ErrorKind::ValueValidation),
        ("role delete ../agents", ErrorKind::ValueValidation),
        (
            "access-binding create --role role_1",
            ErrorKind::MissingRequiredArgument,
        ),
        (
            "access-binding create --role role_1 --agent a --principal p",
            ErrorKind::ArgumentConflict,
        ),
        (
            "service-account create a --kind api-key",
            ErrorKind::MissingRequiredArgument,
        ),
        ("audit list --action a&b", ErrorKind::ValueValidation),
        ("key create --name ci", ErrorKind::MissingRequiredArgument),
        ("key revoke occ_123", ErrorKind::ValueValidation),
        ("agent list --key occ_123", ErrorKind::UnknownArgument),
    ] {
        assert_eq!(parse(line).err(), Some(kind), "{line}");
    }
}

#[test]
fn the_connection_and_the_output_may_stand_anywhere() {
    for line in [
        "--api http://h:1 --key-file k --output json agent list --namespace n --data-dir d",
        "agent --api http://h:1 --output json --namespace n list --key-file k --data-dir d",
        "agent list --api http://h:1 --key-file k --output json -n n --data-dir d",
    ] {
        let cli = parse(line).unwrap_or_else(|error| panic!("{line}: {error:?}"));
        let shown = format!("{:?} {:?} {:?}", cli.connection, cli.output, cli.command);
        for expected in ["http://h:1", "\"k\"", "Json", "namespace: \"n\"", "\"d\""] {
            assert!(shown.contains(expected), "{line}: {shown}");
        }
        assert_eq!(cli.output, Format::Json);
        assert!(matches!(cli.command, Command::Agent(_)));
    }
}

#[test]
fn exit_codes_stay_what_scripts_know() {
    let codes = [
        (Exit::Refused, 1),
        (Exit::Usage, 2),
        (Exit::Unreachable, 3),
        (Exit::Timeout, 4),
        (Exit::Startup, 5),
        (Exit::Interrupted, 130),
    ];
    for (exit, code) in codes {
        assert_eq!(exit as u8, code);
        assert!(
            exit == Exit::Usage || crate::exit::HELP.contains(&format!(" {code} ")),
            "{code} is not in the help"
        );
        assert_eq!(Failure::new(exit, "why").exit(), exit);
    }
}
