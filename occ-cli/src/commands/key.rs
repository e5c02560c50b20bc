//! `occ key`

use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand};
use occ_core::{
    control::ServiceKeyView,
    id::ServiceKeyId,
    resource::{Name, PrincipalId},
    secret_value::SecretValue,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, maybe};
use crate::{
    connect::{KeyHome, find_namespace},
    duration::duration,
    exit::{Done, Failure},
    host::{DataDir, Database, Host, Tools},
};

/// Service keys: what the x-api-key header carries.
#[derive(Debug, Args)]
pub(crate) struct Noun {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    home: KeyHome,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Make a key: through the API for a principal, or on this host for the administrator who lost theirs.
    #[command(
        after_help = "Without --principal, a new administrator's key is made in the data directory itself, and replaces its
admin.key. The API is not asked, so this also helps when no key is left. Earlier keys stay valid until they end or are revoked.

Examples:
  occ key create --data-dir /srv/occ
  occ key create --principal prn_... --name ci --expires-in 90d --out ci.key"
    )]
    Create(Create),
    /// End a key at once.
    Revoke {
        /// Its id, key_...
        key: ServiceKeyId,
    },
}

#[derive(Debug, Args)]
struct Create {
    /// Whose key it is: a person or a service principal; never an Agent's.
    #[arg(long, value_name = "ID")]
    principal: Option<PrincipalId>,
    /// What it is called.
    #[arg(long, requires = "principal", default_value = "cli")]
    name: Name,
    /// The only Namespace that it opens: its name or id [default: every one].
    #[arg(long, requires = "principal")]
    namespace: Option<String>,
    /// How long it lasts, 1d to 365d [default: 30d].
    #[arg(long, requires = "principal", value_name = "DURATION", value_parser = duration)]
    expires_in: Option<Duration>,
    /// A new file that gets the key, readable by you alone [default: it is printed].
    #[arg(long, requires = "principal", value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The API's answer; the value is shown this once.
#[derive(Deserialize)]
struct Issued {
    key: ServiceKeyView,
    value: String,
}

pub(crate) async fn run(noun: Noun, cx: Context<'_>) -> Done {
    match noun.verb {
        Verb::Create(create) => match &create.principal {
            Some(principal) => issue(&noun.home, &create, principal, &cx).await,
            None => renew(&noun.home, &cx).await,
        },
        Verb::Revoke { key } => {
            let client = noun.home.client(cx.connection)?;
            client.delete(&format!("/service-keys/{key}")).await?;
            cx.output.done("revoked")
        }
    }
}

async fn issue(home: &KeyHome, create: &Create, principal: &PrincipalId, cx: &Context<'_>) -> Done {
    let client = home.client(cx.connection)?;
    let namespace = match &create.namespace {
        Some(text) => Some(find_namespace(&client, text).await?),
        None => None,
    };
    let out = create.out.as_deref().map(NewFile::create).transpose()?;
    let body = json!({
        "principalId": principal,
        "name": create.name,
        "namespaceId": namespace,
        "expiresIn": create.expires_in.map(|duration| duration.as_secs()),
    });
    let issued = client.post::<Issued>("/service-keys", &body).await;
    let issued = match (issued, out) {
        (Ok(issued), Some(file)) => {
            let path = file.keep(&SecretValue::from(issued.value))?;
            return show(cx, &issued.key, &("keyFile", path));
        }
        (Ok(issued), None) => issued,
        (Err(error), out) => {
            out.into_iter().for_each(NewFile::discard);
            return Err(error.into());
        }
    };
    show(cx, &issued.key, &("value", issued.value))
}

/// A new file for a credential that is shown once. Made before the credential is: one that cannot be kept must not be issued.
pub(super) struct NewFile<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> NewFile<'a> {
    /// Readable by its owner alone.
    pub(super) fn create(path: &'a Path) -> Done<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file =
            file.map_err(|error| Failure::usage(format!("cannot create {}: {}", path.display(), error.kind())))?;
        Ok(Self { path, file })
    }

    /// Writes the credential, and says where it is.
    pub(super) fn keep(mut self, value: &SecretValue) -> Done<String> {
        let path = self.path.display();
        self.file
            .write_all(value.expose())
            .and_then(|()| self.file.write_all(b"\n"))
            .and_then(|()| self.file.sync_all())
            .map_err(|error| Failure::refused(format!("cannot write {path}: {}", error.kind())))?;
        Ok(path.to_string())
    }

    /// Nothing was issued.
    pub(super) fn discard(self) {
        let _ = std::fs::remove_file(self.path);
    }
}

fn show(cx: &Context<'_>, key: &ServiceKeyView, value: &(&'static str, String)) -> Done {
    let mut item = json!({ "key": key });
    item[value.0] = Value::from(value.1.as_str());
    cx.output.one(&item, |_| {
        vec![
            ("id", key.id.to_string()),
            ("principal", key.principal_id.to_string()),
            ("name", key.name.clone()),
            ("namespace", maybe(key.namespace_id)),
            ("expires", maybe(key.expires_at)),
            (if value.0 == "value" { "key" } else { "key file" }, value.1.clone()),
        ]
    })
}

async fn renew(home: &KeyHome, cx: &Context<'_>) -> Done {
    let root = home.data_dir()?;
    let database = Database::from_environment()?;
    if matches!(database, Database::Embedded) && !root.join(DataDir::DATABASE).is_file() {
        let root = root.display();
        return Err(Failure::startup(format!(
            "there is no control plane in {root}: `occ up` sets one up, and --data-dir names another"
        )));
    }
    let host = Host::open(DataDir::open(&root)?, &database, None, &[], &Tools::find()).await?;
    let renewed = host.renew_admin_key().await;
    let path = host.data.admin_key().display().to_string();
    host.close().await;
    renewed?;
    cx.output
        .one(&json!({ "keyFile": path }), |_| vec![("key file", path.clone())])
}
