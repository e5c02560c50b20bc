//! A plan that any Compute can realise.

use std::collections::{BTreeMap, BTreeSet};

use occ_core::{
    plan::{Component, Directory, EnvValue, Layout, PlannedFile, Role, Text},
    resource::ExecutionMode,
};

use super::{Subject, sample::plans};

pub(super) fn a_plan_has_components_of_its_mode(subject: &dyn Subject) {
    for (sample, planned) in plans(subject) {
        let roles: Vec<Role> = planned.components.iter().map(|component| component.role).collect();
        match sample.mode {
            ExecutionMode::Embedded => assert_eq!(roles, [Role::Combined]),
            ExecutionMode::Dedicated => assert_eq!(roles, [Role::Gateway, Role::Harness], "the gateway comes first"),
        }
        let names: BTreeSet<&str> = planned.components.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(
            names.len(),
            planned.components.len(),
            "components are told apart by their names"
        );
        for component in &planned.components {
            assert!(!component.command.is_empty(), "{}: no program", component.name);
            let readiness = &component.readiness;
            assert!(
                component.ports.contains(&readiness.port),
                "{}: a port that it has not",
                component.name
            );
            assert!(
                readiness.path.starts_with('/'),
                "{}: a path begins with a slash",
                component.name
            );
            let ports: BTreeSet<&String> = component.ports.iter().collect();
            assert_eq!(ports.len(), component.ports.len(), "{}: a port twice", component.name);
            let mounts: BTreeSet<&Directory> = component.mounts.iter().collect();
            assert_eq!(
                mounts.len(),
                component.mounts.len(),
                "{}: a directory twice",
                component.name
            );
        }
    }
}

/// What a Compute fills the component's places with: what the component declares, and the tools that the Harness says it needs.
fn layout(component: &Component, directories: &[Directory], tools: &[&str]) -> Layout {
    let pair = |name: &str| (name.to_owned(), format!("/tools/{name}"));
    Layout {
        tools: tools.iter().map(|name| pair(name)).collect(),
        directories: directories.iter().map(|one| (*one, format!("/{one:?}"))).collect(),
        ports: (40_000..)
            .zip(&component.ports)
            .map(|(number, name)| (name.clone(), number))
            .collect(),
    }
}

fn values(environment: &BTreeMap<String, EnvValue>) -> impl Iterator<Item = &Text> {
    environment.values().filter_map(|value| match value {
        EnvValue::Text(text) => Some(text),
        EnvValue::Secret(_) => None,
    })
}

fn contents(files: &[PlannedFile]) -> impl Iterator<Item = &Text> {
    files.iter().map(|file| &file.content)
}

/// Every text of the component, each with the directories that it may name.
pub(super) fn texts(component: &Component) -> Vec<(Vec<Directory>, &Text)> {
    // The check has directories of its own besides the revision's files.
    let fresh = [Directory::Home, Directory::State, Directory::Temporary];
    let files = component.mounts.iter().copied().filter(|one| *one == Directory::Files);
    let of_check: Vec<Directory> = files.chain(fresh).collect();
    let mine = component.mounts.clone();
    let mut all: Vec<(Vec<Directory>, &Text)> = Vec::new();
    let own = component
        .command
        .iter()
        .chain(values(&component.environment))
        .chain(contents(&component.files));
    all.extend(own.map(|text| (mine.clone(), text)));
    if let Some(probe) = &component.probe {
        let texts = probe
            .command
            .iter()
            .chain(values(&probe.environment))
            .chain(contents(&probe.files));
        all.extend(texts.map(|text| (of_check.clone(), text)));
    }
    if let Some(workspace) = &component.workspace {
        let texts = workspace
            .command
            .iter()
            .chain(values(&workspace.environment))
            .chain([&workspace.templates]);
        all.extend(texts.map(|text| (mine.clone(), text)));
    }
    all
}

pub(super) fn every_place_can_be_filled(subject: &dyn Subject) {
    let tools = subject.tools();
    for (_, planned) in plans(subject) {
        for component in &planned.components {
            assert!(
                component.mounts.contains(&component.working_directory),
                "{}: it starts in a directory that it is not given",
                component.name
            );
            for (directories, text) in texts(component) {
                let filled = text.resolve(&layout(component, &directories, &tools));
                let filled = filled.unwrap_or_else(|missing| panic!("{}: {missing}", component.name));
                assert!(!filled.contains('\0'), "{}: NUL in a text", component.name);
            }
            let whole = layout(component, &component.mounts, &tools);
            let program = component.command[0].resolve(&whole).expect("it was filled");
            assert!(!program.is_empty(), "{}: an empty program", component.name);
            for name in component.environment.keys() {
                assert!(
                    !name.is_empty() && !name.contains(['=', '\0']),
                    "{}: {name:?}",
                    component.name
                );
            }
        }
    }
}

pub(super) fn names_of_files_stay_below_their_directory(subject: &dyn Subject) {
    let below = |name: &str| !name.contains('\0') && name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    for (_, planned) in plans(subject) {
        for component in &planned.components {
            let names: Vec<&str> = component.files.iter().map(|file| file.name.as_str()).collect();
            for name in &names {
                assert!(
                    below(name) && !name.contains('/'),
                    "{}: {name} is no plain name",
                    component.name
                );
            }
            let unique: BTreeSet<&&str> = names.iter().collect();
            assert_eq!(unique.len(), names.len(), "{}: a file twice", component.name);
            assert!(
                names.is_empty() || component.mounts.contains(&Directory::Files),
                "{}: it has files and is not given their directory",
                component.name
            );
            if let Some(probe) = &component.probe {
                assert!(
                    probe.files.iter().all(|file| below(&file.name)),
                    "{}: a check's file",
                    component.name
                );
            }
        }
    }
}

/// A day: longer than anything that is waited for.
const LONGEST_MS: u64 = 24 * 60 * 60 * 1000;

pub(super) fn every_limit_of_time_is_one(subject: &dyn Subject) {
    for (_, planned) in plans(subject) {
        for component in &planned.components {
            let mut limits = vec![component.readiness.start_timeout_ms, component.stop.grace_ms];
            if let Some(probe) = &component.probe {
                limits.extend([probe.base_timeout_ms, probe.cpu_budget_ms]);
            }
            limits.extend(component.workspace.as_ref().map(|workspace| workspace.timeout_ms));
            for limit in limits {
                assert!((1..LONGEST_MS).contains(&limit), "{}: {limit} ms", component.name);
            }
        }
    }
}
