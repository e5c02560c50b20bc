//! A run that only checks: a replacement is judged while its predecessor serves (docs/adr/0007).

use std::process::ExitCode;

use super::{End, Supervisor, lock::Lock, tools};
use crate::{probe, setup, status::State, tree};

impl Supervisor {
    /// Checks programs, workspace and model, and ends with what was found. Nobody has to stop it.
    pub(super) async fn check(mut self, lock: Lock) -> ExitCode {
        let state = match self.examine().await {
            Ok(()) => State::Checked,
            Err(End::Held(held)) => (*held).into(),
            Err(End::Stop) => State::Stopped,
        };
        tree::end_all(|_, _| ()).await;
        self.publisher.state(state);
        drop(lock);
        ExitCode::SUCCESS
    }

    async fn examine(&mut self) -> Result<(), End> {
        tools::check(&self.spec)?;
        setup::verify(&self.spec)?;
        if let Some(probe) = self.spec.probe.clone() {
            self.publisher.state(State::Probing);
            probe::run(self, &probe).await?;
        }
        Ok(())
    }
}
