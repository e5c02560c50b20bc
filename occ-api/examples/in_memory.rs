//! The API over a database in memory and a Compute that runs nothing, for tools that test an API from outside: with no driver of an
//! optional kind and no identity provider or, started as `in_memory every-driver`, with a double of each.
//!
//! Prints where it is, the administrator's key and ids of what is there as one line of JSON; it logs to standard error, and ends with
//! its standard input.

use std::{io::Write as _, net::SocketAddr, sync::Arc};

use occ_api::{Access, Oidc, OidcSettings};
use occ_core::{
    control::{CreateServiceKey, FirstSignIn},
    secret_value::SecretValue,
    store::sqlite::SqliteStore,
};
use occ_test_support::{
    drivers::{Furnished, Selection},
    oidc_provider::{CLIENT_ID, CLIENT_SECRET, OidcProvider, Person},
};
use tokio::io::AsyncReadExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let selection = match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Selection::Bare,
        (Some("every-driver"), None) => Selection::Every,
        _ => return Err("usage: in_memory [every-driver]".into()),
    };
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .with_ansi(false)
        .with_writer(std::io::stderr)
        .init();
    let store = Arc::new(SqliteStore::open_in_memory().await?);
    let furnished = Furnished::over(store, selection).await;
    let world = &furnished.world;
    let input = CreateServiceKey {
        principal_id: world.admin.principal.clone(),
        name: "example".parse()?,
        namespace_id: None,
        expires_in: None,
    };
    let key = world.plane.create_service_key(&world.admin, input).await?;
    let listener = occ_api::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
    let address = listener.local_addr()?;
    let person = Person {
        subject: "grace|1".to_owned(),
        email: "grace@identity.example".to_owned(),
        email_verified: true,
    };
    let provider = OidcProvider::start(person).await?;
    let mut access = Access::default();
    if selection == Selection::Every {
        // So that a tool can be many callers, none of whom tries too often.
        access.trusted_proxies = vec![address.ip().to_string().parse()?];
        let settings = OidcSettings {
            issuer: provider.issuer(),
            client_id: CLIENT_ID.to_owned(),
            client_secret: Some(SecretValue::from(CLIENT_SECRET.to_owned())),
            public_url: format!("http://{address}").parse()?,
            landing: OidcSettings::LANDING.to_owned(),
            first_sign_in: FirstSignIn::Create,
            timeout: OidcSettings::TIMEOUT,
        };
        access.oidc = Some(Oidc::new(settings)?.into());
    }
    let line = serde_json::json!({
        "api": format!("http://{address}"),
        "key": key.value.expose_str(),
        "named": furnished.named,
        "spare": furnished.spare,
        "proxied": selection == Selection::Every,
    });
    writeln!(std::io::stdout(), "{line}")?;
    let worker = furnished.work();
    let input_ends = async {
        let _ = tokio::io::stdin().read_to_end(&mut Vec::new()).await;
    };
    occ_api::serve(listener, occ_api::router_with(world.plane.clone(), access), input_ends).await;
    worker.shutdown().await;
    Ok(())
}
