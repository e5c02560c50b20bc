//! The shape of an Installation file: closed keys, and an error that says what is accepted (spec/contracts 2.2, 2.3).

use std::collections::BTreeMap;

use super::{
    LogLevel, OidcProvider, Path, Position, Problem, SecretPlace, Selection,
    document::Fault,
    node::{Content, Entry, Node},
};
use crate::{
    control::FirstSignIn,
    driver::DriverKind,
    resource::{Backend, BackendId, BackendKind},
};

/// What an Installation file says.
pub(super) struct Parts {
    pub(super) cluster: Option<String>,
    pub(super) log_level: LogLevel,
    pub(super) oidc: Option<OidcProvider>,
    pub(super) backends: Vec<Backend>,
    pub(super) selections: Vec<Selection>,
}

const ID_FORM: &str = "1 to 63 lower-case letters, digits, `-`, `_` and `.`, beginning with a letter or digit";
const DRIVER_FORM: &str = "the name of a linked driver: 1 to 63 letters, digits, `-`, `_`, `.` and `/`";
const CLUSTER_FORM: &str = "the name of a cluster, 1 to 253 characters without control characters";
const BACKEND_ID_FORM: &str = "1 to 200 characters, without surrounding white space or control characters";
const BACKEND_TYPE_FORM: &str = "chatgpt, the only type that is supported yet";
const URL_FORM: &str = "a URL, 1 to 1024 characters";
const CLIENT_FORM: &str = "what the provider calls this installation, 1 to 1024 characters";
const PATH_FORM: &str = "a path of publicUrl that begins with a slash, 1 to 1024 characters";
const FILE_FORM: &str = "the path of a file, 1 to 1024 characters";
const VARIABLE_FORM: &str = "the name of an environment variable, 1 to 1024 characters";
const FIRST_FORM: &str = "one of refuse, link-verified-email, create";
const LEVEL_FORM: &str = "one of debug, info, warn, error";

/// The form of a driver's id. It becomes a folder's name and part of the keys of records.
pub(super) fn is_driver_id(id: &str) -> bool {
    (1..=63).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        && id
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.'))
}

/// The keys of a mapping: those that are accepted, and those of the specification that are refused for now.
struct Keys {
    accepted: &'static [&'static str],
    unsupported: &'static [&'static str],
    text: &'static str,
}

const DOCUMENT: Keys = Keys {
    accepted: &["occ", "logging", "authentication", "backend", "drivers"],
    unsupported: &["presets", "observability", "runtime"],
    text: "occ, logging, authentication, backend, drivers",
};
const OCC: Keys = Keys {
    accepted: &["cluster"],
    unsupported: &[],
    text: "cluster",
};
const LOGGING: Keys = Keys {
    accepted: &["level"],
    unsupported: &[],
    text: "level",
};
const AUTHENTICATION: Keys = Keys {
    accepted: &["oidc"],
    unsupported: &[],
    text: "oidc",
};
const OIDC: Keys = Keys {
    accepted: &[
        "issuer",
        "clientId",
        "clientSecretFile",
        "clientSecretEnvironment",
        "publicUrl",
        "afterSignIn",
        "firstSignIn",
    ],
    unsupported: &[],
    text: "issuer, clientId, publicUrl, and optionally clientSecretFile or clientSecretEnvironment, afterSignIn, and firstSignIn",
};
const BACKEND: Keys = Keys {
    accepted: &["id", "type"],
    unsupported: &["configuration", "drivers"],
    text: "id, type",
};
const DRIVERS: Keys = Keys {
    accepted: &[
        "configuration",
        "iam",
        "secret",
        "compute",
        "sandbox",
        "harness",
        "service_account",
        "plugin",
        "credential_gateway",
    ],
    unsupported: &["credential_refresh", "repo"],
    text: "configuration, iam, secret, compute, harness, and optionally sandbox, service_account, plugin, credential_gateway",
};
const ENTRY: Keys = Keys {
    accepted: &["id", "driver", "configuration"],
    unsupported: &[],
    text: "id, driver, and optionally configuration",
};

/// A mapping whose keys are all accepted.
struct Fields<'a> {
    at: Position,
    path: Path,
    entries: &'a [Entry],
    keys: &'static Keys,
}

impl<'a> Fields<'a> {
    fn of(node: &'a Node, path: Path, keys: &'static Keys) -> Result<Self, Fault> {
        let Content::Map(entries) = &node.content else {
            return Err(wrong_type(node, path, "a mapping"));
        };
        for entry in entries {
            let problem = if keys.unsupported.contains(&entry.key.as_str()) {
                Problem::Unsupported(keys.text)
            } else if keys.accepted.contains(&entry.key.as_str()) {
                continue;
            } else {
                Problem::UnknownKey(keys.text)
            };
            return Err(Fault {
                at: entry.at,
                path: path.key(&entry.key),
                problem,
            });
        }
        Ok(Self {
            at: node.at,
            path,
            entries,
            keys,
        })
    }

    fn find(&self, key: &str) -> Option<(&'a Node, Path)> {
        self.entries
            .iter()
            .find(|e| e.key == key)
            .map(|e| (&e.value, self.path.key(key)))
    }

    fn get(&self, key: &str) -> Result<(&'a Node, Path), Fault> {
        self.find(key).ok_or_else(|| Fault {
            at: self.at,
            path: self.path.key(key),
            problem: Problem::Missing(self.keys.text),
        })
    }
}

fn wrong_type(node: &Node, path: Path, expected: &'static str) -> Fault {
    Fault {
        at: node.at,
        path,
        problem: Problem::Type {
            expected,
            found: node.kind(),
        },
    }
}

fn text(node: &Node, path: Path, form: &'static str, accepts: impl Fn(&str) -> bool) -> Result<String, Fault> {
    match &node.content {
        Content::Text(text) if accepts(text) => Ok(text.clone()),
        Content::Text(_) => Err(Fault {
            at: node.at,
            path,
            problem: Problem::Form(form),
        }),
        _ => Err(wrong_type(node, path, "a text")),
    }
}

/// Reads the whole document.
pub(super) fn shape(document: &Node) -> Result<Parts, Fault> {
    if document.content == Content::Null {
        return Err(Fault {
            at: document.at,
            path: Path::default(),
            problem: Problem::Empty,
        });
    }
    let top = Fields::of(document, Path::default(), &DOCUMENT)?;
    Ok(Parts {
        cluster: top.find("occ").map_or(Ok(None), |(node, path)| cluster(node, path))?,
        log_level: top
            .find("logging")
            .map_or(Ok(LogLevel::default()), |(node, path)| level(node, path))?,
        oidc: top
            .find("authentication")
            .map_or(Ok(None), |(node, path)| authentication(node, path))?,
        backends: top
            .find("backend")
            .map_or(Ok(Vec::new()), |(node, path)| backends(node, &path))?,
        selections: top.get("drivers").and_then(|(node, path)| drivers(node, path))?,
    })
}

fn cluster(node: &Node, path: Path) -> Result<Option<String>, Fault> {
    let name = |name: &str| (1..=253).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    let occ = Fields::of(node, path, &OCC)?;
    occ.find("cluster")
        .map(|(node, path)| text(node, path, CLUSTER_FORM, name))
        .transpose()
}

fn level(node: &Node, path: Path) -> Result<LogLevel, Fault> {
    let levels = [LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];
    let find = |word: &str| levels.into_iter().find(|level| level.as_str() == word);
    let logging = Fields::of(node, path, &LOGGING)?;
    let Some((node, path)) = logging.find("level") else {
        return Ok(LogLevel::default());
    };
    let word = text(node, path, LEVEL_FORM, |word| find(word).is_some())?;
    Ok(find(&word).unwrap_or_default())
}

/// How people are recognised besides their passwords.
fn authentication(node: &Node, path: Path) -> Result<Option<OidcProvider>, Fault> {
    let authentication = Fields::of(node, path, &AUTHENTICATION)?;
    authentication
        .find("oidc")
        .map(|(node, path)| oidc(node, path))
        .transpose()
}

/// The client secret stands in a file or in the environment, never here.
fn oidc(node: &Node, path: Path) -> Result<OidcProvider, Fault> {
    let oidc = Fields::of(node, path, &OIDC)?;
    let short =
        |form: &'static str| move |(node, path)| text(node, path, form, |text| (1..=1024).contains(&text.len()));
    let secret_file = oidc.find("clientSecretFile").map(short(FILE_FORM)).transpose()?;
    let variable = oidc.find("clientSecretEnvironment");
    if let (Some(_), Some((node, path))) = (&secret_file, &variable) {
        return Err(Fault {
            at: node.at,
            path: path.clone(),
            problem: Problem::Form("either clientSecretFile or clientSecretEnvironment"),
        });
    }
    let variable = variable.map(short(VARIABLE_FORM)).transpose()?;
    let first_sign_in = match oidc.find("firstSignIn") {
        None => FirstSignIn::default(),
        Some((node, path)) => {
            let find = |word: &str| serde_json::from_value(word.into()).ok();
            let word = text(node, path, FIRST_FORM, |word| find(word).is_some())?;
            find(&word).unwrap_or_default()
        }
    };
    Ok(OidcProvider {
        issuer: oidc.get("issuer").and_then(short(URL_FORM))?,
        client_id: oidc.get("clientId").and_then(short(CLIENT_FORM))?,
        client_secret: match (secret_file, variable) {
            (Some(file), _) => Some(SecretPlace::File(file.into())),
            (None, Some(variable)) => Some(SecretPlace::Environment(variable)),
            (None, None) => None,
        },
        public_url: oidc.get("publicUrl").and_then(short(URL_FORM))?,
        landing: oidc.find("afterSignIn").map(short(PATH_FORM)).transpose()?,
        first_sign_in,
    })
}

/// At most one of each type (spec/contracts 2.10); what a type's own driver would need is not accepted yet.
fn backends(node: &Node, path: &Path) -> Result<Vec<Backend>, Fault> {
    let Content::List(items) = &node.content else {
        return Err(wrong_type(node, path.clone(), "a list of backends"));
    };
    let mut found: Vec<Backend> = Vec::new();
    for (i, item) in items.iter().enumerate() {
        let entry = Fields::of(item, path.index(i), &BACKEND)?;
        let (id, id_path) = entry.get("id")?;
        let id = text(id, id_path, BACKEND_ID_FORM, |id| id.parse::<BackendId>().is_ok())?;
        let (kind, kind_path) = entry.get("type")?;
        text(kind, kind_path, BACKEND_TYPE_FORM, |kind| kind == "chatgpt")?;
        let Ok(id) = id.parse() else { continue };
        let kind = BackendKind::Chatgpt;
        if found.iter().any(|other| other.kind == kind) {
            return Err(Fault {
                at: entry.at,
                path: entry.path.key("type"),
                problem: Problem::Form("a type that no earlier backend has"),
            });
        }
        found.push(Backend { id, kind });
    }
    Ok(found)
}

fn drivers(node: &Node, path: Path) -> Result<Vec<Selection>, Fault> {
    let drivers = Fields::of(node, path, &DRIVERS)?;
    let mut selections = Vec::new();
    for kind in DriverKind::ALL {
        match kind {
            DriverKind::Harness => harnesses(&drivers, &mut selections)?,
            DriverKind::Sandbox | DriverKind::ServiceAccount | DriverKind::Plugin | DriverKind::CredentialGateway => {
                if let Some((node, path)) = drivers.find(kind.as_str()) {
                    selections.push(selection(kind, node, path)?);
                }
            }
            DriverKind::Configuration | DriverKind::Iam | DriverKind::Secret | DriverKind::Compute => {
                let (node, path) = drivers.get(kind.as_str())?;
                selections.push(selection(kind, node, path)?);
            }
        }
    }
    Ok(selections)
}

fn harnesses(drivers: &Fields<'_>, selections: &mut Vec<Selection>) -> Result<(), Fault> {
    let (node, path) = drivers.get(DriverKind::Harness.as_str())?;
    let Content::List(items) = &node.content else {
        return Err(wrong_type(node, path, "a list of harnesses"));
    };
    if items.is_empty() {
        return Err(Fault {
            at: node.at,
            path,
            problem: Problem::Form("at least one harness"),
        });
    }
    let mut seen = BTreeMap::new();
    for (i, item) in items.iter().enumerate() {
        let selected = selection(DriverKind::Harness, item, path.index(i))?;
        if let Some(first) = seen.insert(selected.id.clone(), selected.at) {
            return Err(Fault {
                at: selected.at,
                path: selected.path.key("id"),
                problem: Problem::DuplicateId { first },
            });
        }
        selections.push(selected);
    }
    Ok(())
}

fn selection(kind: DriverKind, node: &Node, path: Path) -> Result<Selection, Fault> {
    let entry = Fields::of(node, path, &ENTRY)?;
    let (id, id_path) = entry.get("id")?;
    let (driver, driver_path) = entry.get("driver")?;
    let settings = match entry.find("configuration") {
        Some((node, _)) if matches!(node.content, Content::Map(_)) => node.clone(),
        Some((node, path)) => return Err(wrong_type(node, path, "a mapping ({} for no settings)")),
        None => Node::empty(entry.at),
    };
    let name = |name: &str| {
        (1..=63).contains(&name.len())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
    };
    Ok(Selection {
        kind,
        id: text(id, id_path, ID_FORM, is_driver_id)?,
        driver: text(driver, driver_path, DRIVER_FORM, name)?,
        settings,
        at: entry.at,
        driver_at: driver.at,
        path: entry.path,
    })
}
