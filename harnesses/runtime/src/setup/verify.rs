//! Whether a workspace that another version uses holds this Agent's setup: looked at, never written to.

use std::{fs, path::Path};

use occ_core::reason::{PreparationReason, PreparationStage, RuntimeCode, Token};

use super::{
    directory::{Entry, Workspace},
    marker::Marker,
};
use crate::{
    spec::LaunchSpec,
    supervise::{End, Held},
};

/// Holds when the start of the component would be refused because of the workspace.
pub fn verify(spec: &LaunchSpec) -> Result<(), End> {
    let Some(workspace) = &spec.workspace else {
        return Ok(());
    };
    let Some(setup) = &workspace.setup else { return Ok(()) };
    let held = |code, reason| {
        Held::new(&spec.component, Token::known("workspace-setup"), code, None).because(
            PreparationStage::WorkspaceSetup,
            reason,
            None,
        )
    };
    let refused = || Err(held(RuntimeCode::WorkspaceSetupRefused, PreparationReason::SetupConflict).into());
    let unreadable = |_| held(RuntimeCode::Unavailable, PreparationReason::StorageDenied);
    if fs::symlink_metadata(Path::new(&workspace.directory)).is_err() {
        // The setup makes it, unless its texts are gone.
        return if setup.completed() { refused() } else { Ok(()) };
    }
    let Some(directory) = Workspace::open(&workspace.directory).map_err(unreadable)? else {
        return refused();
    };
    match directory.read(Marker::FILE).map_err(unreadable)? {
        Entry::Text(text) if Marker::parse(&text).as_ref() == Some(&Marker::of(workspace, setup)) => Ok(()),
        Entry::Absent if !setup.completed() => Ok(()),
        Entry::Text(_) | Entry::Irregular | Entry::Absent => refused(),
    }
}
