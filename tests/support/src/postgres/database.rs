//! A database of a test's own, from a template that has the schema.

use std::{io, time::UNIX_EPOCH};

use occ_core::store::postgres::{PostgresSettings, PostgresStore};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};
use uuid::Uuid;

use super::shared::{Shared, server};
use crate::proxy::Proxy;

/// A migrated, empty database. Dropped, it is removed.
#[derive(Debug)]
pub struct Database {
    server: Shared,
    name: String,
}

impl Database {
    /// A fresh one on the shared server, with the schema.
    ///
    /// # Panics
    /// When the server cannot be started or refuses: a test has nothing else to do then.
    pub async fn fresh() -> Self {
        let server = shared().await;
        let template = template(&server).await;
        Self::create(server, &template).await
    }

    /// An empty one.
    ///
    /// # Panics
    /// As [`fresh`](Self::fresh) does.
    pub async fn empty() -> Self {
        Self::create(shared().await, "template0").await
    }

    async fn create(server: Shared, template: &str) -> Self {
        let name = format!("occ_test_{}", Uuid::new_v4().simple());
        let mut admin = connect(&server.url("postgres")).await;
        run(&mut admin, format!("CREATE DATABASE {name} TEMPLATE {template}")).await;
        let _ = admin.close().await;
        Self { server, name }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// How a store over it is opened.
    ///
    /// # Panics
    /// Never: the URL is our own.
    pub fn settings(&self) -> PostgresSettings {
        PostgresSettings::from_url(&self.url()).expect("a URL")
    }

    /// A proxy before its server, and its URL through the proxy.
    ///
    /// # Panics
    /// When the server's address is not known.
    pub async fn proxied(&self) -> (Proxy, String) {
        let mut url = url::Url::parse(&self.url()).expect("a URL");
        let host = url.host_str().expect("a host");
        let server = tokio::net::lookup_host((host, url.port().unwrap_or(5432))).await;
        let server = server.expect("an address").next().expect("an address");
        let proxy = Proxy::start(server).await.expect("a proxy");
        url.set_host(Some("127.0.0.1")).expect("a host");
        url.set_port(Some(proxy.address().port())).expect("a port");
        (proxy, url.into())
    }

    /// A connection that bypasses the store, with the rights of the schema's owner.
    pub async fn raw(&self) -> PgConnection {
        connect(&self.url()).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (url, name) = (self.server.url("postgres"), self.name.clone());
        // A test's runtime cannot be waited for here.
        let removed = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let removal = async {
                let mut admin = connect(&url).await;
                run(&mut admin, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
            };
            if let Ok(runtime) = runtime {
                runtime.block_on(removal);
            }
        });
        let _ = removed.join();
    }
}

async fn shared() -> Shared {
    let started = tokio::task::spawn_blocking(server).await;
    started.expect("no panic").expect("a server")
}

/// The template of this build: made by whichever of its tests comes first.
async fn template(server: &Shared) -> String {
    let built = std::env::current_exe().and_then(|program| program.metadata()?.modified());
    let built = built.map_err(io::Error::other).expect("this program");
    let built = built.duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
    let name = format!("occ_template_{built}");
    let mut admin = connect(&server.url("postgres")).await;
    // Any number: one test makes it, the others wait.
    run(&mut admin, "SELECT pg_advisory_lock(4)".to_owned()).await;
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)")
        .bind(&name)
        .fetch_one(&mut admin)
        .await
        .expect("an answer");
    if !exists {
        let making = format!("occ_making_{}", Uuid::new_v4().simple());
        run(&mut admin, format!("CREATE DATABASE {making}")).await;
        let settings = PostgresSettings::from_url(&server.url(&making)).expect("a URL");
        PostgresStore::migrate(&settings).await.expect("it is migrated");
        // Only a whole one gets the name.
        run(&mut admin, format!("ALTER DATABASE {making} RENAME TO {name}")).await;
    }
    let _ = admin.close().await;
    name
}

async fn connect(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().expect("a URL");
    options
        .disable_statement_logging()
        .connect()
        .await
        .expect("the server answers")
}

async fn run(connection: &mut PgConnection, statement: String) {
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(connection)
        .await
        .expect("the server obeys");
}
