//! Where the API is, and who asks it.

use std::path::{Path, PathBuf};

use clap::Args;
use occ_core::{id::NamespaceId, resource::Namespace};

use crate::{
    client::Client,
    exit::{Done, Failure},
    host::{DataDir, read_key},
};

/// Options that every command has.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The API's address.
    #[arg(
        long,
        global = true,
        env = "OCC_API",
        default_value = "http://127.0.0.1:8080",
        value_name = "URL"
    )]
    api: String,
    /// The file that holds the service key [default: admin.key in the data directory].
    #[arg(long, global = true, env = "OCC_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
}

/// Where the key is when no key file is named.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct KeyHome {
    /// A control plane's data directory on this host, for its admin.key [default: the one of `occ up`].
    #[arg(long, global = true, env = "OCC_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// The Namespace that a command is about.
#[derive(Debug, Args)]
pub(crate) struct Scope {
    /// The Namespace: its name or id.
    #[arg(
        long,
        short,
        global = true,
        env = "OCC_NAMESPACE",
        default_value = "default",
        value_name = "NAMESPACE"
    )]
    namespace: String,
    #[command(flatten)]
    home: KeyHome,
}

/// A Namespace, and the API to ask about it.
pub(crate) struct Session {
    pub client: Client,
    pub namespace: NamespaceId,
}

impl KeyHome {
    /// A client of the API.
    pub(crate) fn client(&self, connection: &Connection) -> Done<Client> {
        let key = match &connection.key_file {
            Some(path) => read_key(path)?,
            None => read_key(&self.data_dir()?.join("admin.key"))?,
        };
        Client::new(&connection.api, &key)
    }

    /// The data directory, which may not exist.
    pub(crate) fn data_dir(&self) -> Done<PathBuf> {
        self.data_dir
            .as_deref()
            .map(Path::to_owned)
            .map_or_else(DataDir::default_path, Ok)
    }
}

impl Scope {
    /// Finds the Namespace.
    pub(crate) async fn open(&self, connection: &Connection) -> Done<Session> {
        let client = self.home.client(connection)?;
        let namespace = find_namespace(&client, &self.namespace).await?;
        Ok(Session { client, namespace })
    }
}

/// Whose policy a command is about.
#[derive(Debug, Args)]
pub(crate) struct PolicyScope {
    /// The policy of the Installation, which is confined to no Namespace.
    #[arg(long, global = true)]
    installation: bool,
    #[command(flatten)]
    scope: Scope,
}

/// The policy of a Namespace or of the Installation, and the API to ask about it.
pub(crate) enum Policy {
    Installation(Client),
    Namespace(Session),
}

impl PolicyScope {
    pub(crate) async fn open(&self, connection: &Connection) -> Done<Policy> {
        Ok(if self.installation {
            Policy::Installation(self.scope.home.client(connection)?)
        } else {
            Policy::Namespace(self.scope.open(connection).await?)
        })
    }
}

impl Policy {
    pub(crate) fn client(&self) -> &Client {
        match self {
            Self::Installation(client) => client,
            Self::Namespace(session) => &session.client,
        }
    }

    pub(crate) fn path(&self, rest: &str) -> String {
        match self {
            Self::Installation(_) => format!("/{rest}"),
            Self::Namespace(session) => session.path(rest),
        }
    }

    /// The Namespace, for what only one has.
    pub(crate) fn session(&self) -> Done<&Session> {
        match self {
            Self::Installation(_) => Err(Failure::usage(
                "a grant of the Installation is for a person (--principal) and for all of it: leave --agent and --resource out",
            )),
            Self::Namespace(session) => Ok(session),
        }
    }
}

/// The Namespace with this name or id. An id is not looked up: the caller may know one Namespace alone.
pub(crate) async fn find_namespace(client: &Client, text: &str) -> Done<NamespaceId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let namespaces: Vec<Namespace> = client.get("/namespaces").await?;
    let found = namespaces.iter().find(|namespace| namespace.name.as_str() == text);
    found
        .map(|namespace| namespace.id)
        .ok_or_else(|| missing("Namespace", text))
}

/// Nothing has this name.
pub(crate) fn missing(kind: &str, text: &str) -> Failure {
    Failure::refused(format!("there is no {kind} \"{text}\" that you may read")).with_code("NOT_FOUND")
}
