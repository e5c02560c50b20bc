//! A Harness with a document of two keys, with one flaw or none.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use occ_conformance::{
    Case,
    harness::{LITERAL, Sample, Subject, suite},
};
use occ_core::{
    driver::{
        CONTRACT_VERSION, DocumentProblem, DriverIdentity, DriverKind, GatewaySettings, Harness, HarnessSelection,
        PlanInput,
    },
    plan::{
        Component, Directory, EnvValue, PlannedFile, Probe, Readiness, Role, SecretSlot, StopPolicy, Text,
        WorkloadPlan, WorkspaceInit,
    },
    reason::Token,
    resource::{Document, EnvName, ExecutionMode, HarnessAuth, HarnessAuthMethod},
};
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    IdentityPerInstance,
    AnswersBySequence,
    CountsPlans,
    SelectsAnother,
    AcceptsUnknownModels,
    IgnoresMode,
    AcceptsLiterals,
    RepeatsValues,
    PlansTwoGateways,
    UndeclaredPort,
    UndeclaredTool,
    UndeclaredDirectory,
    FileAbove,
    NoGrace,
    HostPath,
    HoldsLocator,
    NoCredential,
    CheckKnowsMore,
    ForgetsBinding,
    Panics,
    ValidWithoutPlan,
}

struct Model {
    flaw: Flaw,
    identity: DriverIdentity,
    asked: AtomicU64,
}

fn problem(pointer: &str, message: &'static str) -> DocumentProblem {
    DocumentProblem {
        pointer: pointer.to_owned(),
        message,
    }
}

impl Model {
    fn is(&self, flaw: Flaw) -> bool {
        self.flaw == flaw
    }

    fn model<'a>(&self, document: &'a Document) -> Result<&'a str, DocumentProblem> {
        match document.get("model") {
            Some(Value::String(model)) if model == "large" => Ok(model),
            Some(Value::String(model)) if self.is(Flaw::RepeatsValues) => {
                Err(problem("/model", String::leak(format!("{model} is no model"))))
            }
            Some(Value::Null) if self.is(Flaw::Panics) => panic!("nobody writes null"),
            Some(Value::String(model)) if self.is(Flaw::AcceptsUnknownModels) => Ok(model),
            _ => Err(problem("/model", "The model must be large.")),
        }
    }
}

impl Harness for Model {
    fn identity(&self) -> &DriverIdentity {
        &self.identity
    }

    fn version(&self) -> &'static str {
        "1.0.0"
    }

    fn modes(&self) -> &[ExecutionMode] {
        &[ExecutionMode::Embedded]
    }

    fn select(&self, document: &Document) -> Result<HarnessSelection, DocumentProblem> {
        self.model(document)?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        if self.is(Flaw::AnswersBySequence) && asked > 0 {
            return Err(problem("", "Only the first document is answered."));
        }
        let id = if self.is(Flaw::SelectsAnother) {
            "another"
        } else {
            "model"
        };
        Ok(HarnessSelection { harness: id.to_owned() })
    }

    fn validate(
        &self,
        document: &Document,
        mode: ExecutionMode,
        auth: HarnessAuthMethod,
    ) -> Result<(), DocumentProblem> {
        self.check_saved(document)?;
        if mode != ExecutionMode::Embedded && !self.is(Flaw::IgnoresMode) {
            return Err(problem("", "It must run embedded."));
        }
        if !matches!(auth, HarnessAuthMethod::ApiKey | HarnessAuthMethod::Runtime) {
            return Err(problem("", "It needs an API key."));
        }
        if self.is(Flaw::ValidWithoutPlan) {
            return Ok(());
        }
        self.model(document).map(drop)
    }

    fn check_saved(&self, document: &Document) -> Result<(), DocumentProblem> {
        if document.contains_key("key") && !self.is(Flaw::AcceptsLiterals) {
            return Err(problem("/key", "The key must be a reference."));
        }
        Ok(())
    }

    fn gateway_settings(&self, _: &Document) -> Result<GatewaySettings, DocumentProblem> {
        Ok(GatewaySettings::default())
    }

    fn plan(&self, input: PlanInput<'_>) -> Result<WorkloadPlan, DocumentProblem> {
        let model = self.model(&input.snapshot.configuration)?;
        let count = self.asked.fetch_add(1, Ordering::Relaxed);
        let mut environment: std::collections::BTreeMap<String, EnvValue> =
            [("MODEL".to_owned(), EnvValue::Text(model.into()))].into();
        if input.snapshot.harness_auth.binding.method() == HarnessAuthMethod::ApiKey && !self.is(Flaw::NoCredential) {
            environment.insert("KEY".to_owned(), EnvValue::Secret(SecretSlot::HarnessCredential));
        }
        for (name, secret) in &input.snapshot.secret_bindings {
            if !self.is(Flaw::ForgetsBinding) {
                environment.insert(name.to_string(), EnvValue::Secret(SecretSlot::Binding(name.clone())));
            }
            if self.is(Flaw::HoldsLocator) {
                environment.insert(
                    "WHERE".to_owned(),
                    EnvValue::Text(secret.backend_ref.name.as_str().into()),
                );
            }
        }
        if self.is(Flaw::CountsPlans) {
            environment.insert("COUNT".to_owned(), EnvValue::Text(count.to_string().as_str().into()));
        }
        let mut of_check = environment.clone();
        of_check.retain(|_, value| matches!(value, EnvValue::Text(_)));
        if self.is(Flaw::CheckKnowsMore) {
            of_check.insert("PASSWORD".to_owned(), EnvValue::Secret(SecretSlot::GatewayPassword));
        }
        let tool = if self.is(Flaw::UndeclaredTool) {
            "curl"
        } else {
            "program"
        };
        let port = if self.is(Flaw::UndeclaredPort) {
            "admin"
        } else {
            "gateway"
        };
        let mut command = vec![
            Text::tool(tool),
            Text::path(Directory::Files, "config.json"),
            Text::port(port),
        ];
        if self.is(Flaw::HostPath) {
            command.push("/etc/model.json".into());
        }
        if self.is(Flaw::UndeclaredDirectory) {
            command.push(Text::directory(Directory::Home));
        }
        let file = if self.is(Flaw::FileAbove) {
            "../config.json"
        } else {
            "config.json"
        };
        let component = Component {
            name: Token::known("gateway"),
            role: Role::Combined,
            command,
            environment,
            files: vec![PlannedFile {
                name: file.to_owned(),
                content: model.into(),
            }],
            ports: vec!["gateway".to_owned()],
            mounts: vec![Directory::Files, Directory::Workspace],
            working_directory: Directory::Workspace,
            readiness: Readiness {
                port: "gateway".to_owned(),
                path: "/readyz".to_owned(),
                start_timeout_ms: 1000,
            },
            probe: Some(Probe {
                reader: "report/1".to_owned(),
                expect: std::collections::BTreeMap::new(),
                command: vec![Text::tool(tool), Text::directory(Directory::State)],
                environment: of_check,
                files: Vec::new(),
                base_timeout_ms: 1000,
                cpu_budget_ms: 1000,
            }),
            workspace: Some(WorkspaceInit {
                command: vec![Text::tool(tool)],
                environment: std::collections::BTreeMap::new(),
                timeout_ms: 1000,
                templates: Text::path(Directory::Files, "templates"),
            }),
            stop: StopPolicy {
                grace_ms: if self.is(Flaw::NoGrace) { 0 } else { 1000 },
            },
        };
        let mut components = vec![component.clone()];
        if self.is(Flaw::PlansTwoGateways) {
            components.push(component);
        }
        Ok(WorkloadPlan { components })
    }
}

struct Made(Flaw);

fn document(value: &Value) -> Document {
    value.as_object().expect("an object").clone()
}

impl Subject for Made {
    fn harness(&self) -> Arc<dyn Harness> {
        let id = match self.0 {
            Flaw::IdentityPerInstance => uuid::Uuid::new_v4().to_string(),
            _ => "model".to_owned(),
        };
        Arc::new(Model {
            flaw: self.0,
            identity: DriverIdentity {
                kind: DriverKind::Harness,
                id,
                implementation: "conformance/model".to_owned(),
                contract: CONTRACT_VERSION,
            },
            asked: AtomicU64::new(0),
        })
    }

    fn accepted(&self) -> Vec<Sample> {
        let mut bound = Sample::embedded(document(&json!({ "model": "large", "extra": [1, { "a": true }] })));
        bound.bindings = vec![EnvName::try_from("TOKEN".to_owned()).expect("not reserved")];
        let mut hosts_own = Sample::embedded(document(&json!({ "model": "large" })));
        hosts_own.auth = HarnessAuth::Runtime {};
        vec![bound, hosts_own]
    }

    fn refused(&self) -> Vec<(&'static str, Sample)> {
        vec![(
            "an unknown model",
            Sample::embedded(document(&json!({ "model": "small" }))),
        )]
    }

    fn literal_credentials(&self) -> Vec<(&'static str, Document)> {
        vec![("the key", document(&json!({ "model": "large", "key": LITERAL })))]
    }

    fn tools(&self) -> Vec<&'static str> {
        vec!["program"]
    }
}

fn cases(flaw: Flaw) -> Vec<Case> {
    suite(move || Made(flaw))
}

#[test]
fn a_harness_that_keeps_its_contract_keeps_every_rule() {
    super::keeps_every_rule(cases(Flaw::None));
}

#[test]
fn every_rule_for_harnesses_has_teeth() {
    let table = [
        (Flaw::IdentityPerInstance, "it_says_who_it_is"),
        (Flaw::AnswersBySequence, "a_document_has_one_answer"),
        (Flaw::CountsPlans, "a_plan_is_the_same_each_time"),
        (Flaw::SelectsAnother, "what_it_runs_is_accepted"),
        (Flaw::AcceptsUnknownModels, "what_it_refuses_is_refused"),
        (Flaw::IgnoresMode, "a_mode_that_it_does_not_have_is_refused"),
        (
            Flaw::AcceptsLiterals,
            "a_literal_credential_is_refused_when_it_is_saved",
        ),
        (Flaw::RepeatsValues, "no_refusal_repeats_a_value"),
        (Flaw::PlansTwoGateways, "a_plan_has_components_of_its_mode"),
        (Flaw::UndeclaredPort, "every_place_can_be_filled"),
        (Flaw::UndeclaredTool, "every_place_can_be_filled"),
        (Flaw::UndeclaredDirectory, "every_place_can_be_filled"),
        (Flaw::FileAbove, "names_of_files_stay_below_their_directory"),
        (Flaw::NoGrace, "every_limit_of_time_is_one"),
        (Flaw::HostPath, "a_plan_names_no_path_of_a_host"),
        (Flaw::HoldsLocator, "a_plan_holds_nothing_of_a_secret"),
        (Flaw::NoCredential, "credentials_follow_the_role"),
        (Flaw::CheckKnowsMore, "credentials_follow_the_role"),
        (Flaw::ForgetsBinding, "bound_secrets_reach_the_gateway_alone"),
        (
            Flaw::Panics,
            "a_damaged_document_is_refused_or_planned_and_never_a_panic",
        ),
        (
            Flaw::ValidWithoutPlan,
            "a_damaged_document_is_refused_or_planned_and_never_a_panic",
        ),
    ];
    super::every_rule_has_teeth(&table, cases);
}
