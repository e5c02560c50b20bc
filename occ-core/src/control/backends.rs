//! Backends: what the Installation's configuration decides (spec/engine 13).

use super::{Answer, Caller, ControlPlane, operation::Scope};
use crate::{
    driver::{Action, ResourceRef},
    resource::Backend,
};

impl ControlPlane {
    /// The configured Backends. Needs `installation:administer`.
    pub async fn backends(&self, caller: &Caller) -> Answer<Vec<Backend>> {
        let op = self.operation(caller, "openclaw.backends.list", Scope::Installation);
        op.answer(async {
            let installation = ResourceRef::installation(self.known_installation().await?.id);
            op.require(Action::Administer, installation).await?;
            Ok(self.drivers.backends().to_vec())
        })
        .await
    }
}
