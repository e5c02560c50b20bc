//! Garbage, sent to every route that the OpenAPI document has: no answer is a 500, nobody is kept waiting, and nothing is written.
//!
//! The routes, their bodies and their queries are the document's, so that a new route is sent the same by itself. Every Installation's
//! optional drivers are selected, and each path names something that is there.

mod bodies;
mod faults;
mod headers;
mod kept;
mod places;
mod routes;
mod sample;
mod slow;
mod values;
mod wire;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use occ_api::{Access, Oidc};
use occ_core::{control::FirstSignIn, store::sqlite::SqliteStore};
use occ_test_support::{
    drivers::{Furnished, Ids, Selection},
    oidc_provider::OidcProvider,
};
use reqwest::{RequestBuilder, StatusCode};

use crate::{
    people::{
        browser::{self, Browser},
        oidc,
    },
    served::{Seen, Served},
};
use kept::{Effects, Kept};
use routes::{Caller, Route};

/// An answer that takes longer does not come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A served control plane with one of everything, whose every write is seen.
struct Ground {
    served: Served,
    named: Ids,
    session: Browser,
    kept: Kept,
    _provider: OidcProvider,
    _directory: tempfile::TempDir,
}

impl Ground {
    async fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("occ.db");
        let store = SqliteStore::open(&path).await.expect("it opens");
        let furnished = Furnished::over(Arc::new(store), Selection::Every).await;
        let Furnished {
            world,
            gateway,
            issuer,
            named,
            ..
        } = furnished;
        let effects = Effects {
            compute: Arc::clone(&world.compute),
            gateway,
            issuer,
        };
        let provider = OidcProvider::start(oidc::grace()).await.expect("a provider");
        let access = Access {
            oidc: Some(
                Oidc::new(oidc::settings(&provider, FirstSignIn::Create))
                    .expect("settings")
                    .into(),
            ),
            ..Access::default()
        };
        let served = Served::trusting(world, access).await;
        browser::administrator(&served).await;
        let session = browser::sign_in(&served, "ada@example.com").await;
        Self {
            kept: Kept::of(&path, effects).await,
            served,
            named,
            session,
            _provider: provider,
            _directory: directory,
        }
    }

    /// A request to a route, from somebody who may do everything.
    fn request(&self, route: &Route) -> RequestBuilder {
        self.request_to(route, &route.path(&self.named))
    }

    fn request_to(&self, route: &Route, path: &str) -> RequestBuilder {
        let request = match route.caller {
            Caller::Session => self.session.request(&self.served, route.method.clone(), path),
            Caller::Key => self.served.request(route.method.clone(), path),
            Caller::Anyone => {
                let url = format!("http://{}{path}", self.served.address);
                self.served.http.request(route.method.clone(), url)
            }
        };
        request.timeout(PATIENCE)
    }

    /// Sends it: the answer is one that the document gives.
    async fn answer(&self, route: &Route, case: &str, request: RequestBuilder) -> StatusCode {
        let case = format!("{} {} with {case}", route.method, route.template);
        let response = request.send().await;
        let response = response.unwrap_or_else(|error| panic!("{case}: no answer: {error}"));
        let status = response.status();
        assert!(
            route.statuses.contains(&status.as_u16()) && status != StatusCode::INTERNAL_SERVER_ERROR,
            "{case}: {status}"
        );
        if status.is_client_error() || status.is_server_error() {
            Seen::of(response).await;
        }
        status
    }

    /// Sends it: it is refused with one of these statuses, and nothing was written.
    async fn refused(&mut self, route: &Route, case: &str, request: RequestBuilder, statuses: &[u16]) {
        let status = self.answer(route, case, request).await.as_u16();
        let case = format!("{} {} with {case}", route.method, route.template);
        assert!(statuses.contains(&status), "{case}: {status}");
        self.unmoved(&case).await;
    }

    /// Nothing was written, and nothing was done anywhere, since it was last looked at.
    async fn unmoved(&mut self, case: &str) {
        assert_eq!(self.kept.moved().await, BTreeSet::new(), "{case}");
    }
}
