//! The check of selected plugins that drafts and deployments share: the selected driver can carry their policies out (spec/engine 3,
//! step 21). Whether the plugins exist is for the start of a version.

use super::{DetailCode, Refusal};
use crate::{
    driver::PluginDriver,
    reason::ApiCode,
    resource::{Approver, Plugins},
};

/// 501 without a driver; 400 pointing at what it cannot carry out.
pub(crate) fn supported(
    driver: Option<&dyn PluginDriver>,
    plugins: &Plugins,
    approvers: Option<&[Approver]>,
) -> Result<(), Refusal> {
    if plugins.is_empty() && approvers.is_none() {
        return Ok(());
    }
    let Some(driver) = driver else {
        return Err(Refusal::fixed(
            ApiCode::NotImplemented,
            "The Installation has no Plugin Driver: an Agent can select no plugins.",
        ));
    };
    driver.validate_policies(plugins, approvers).map_err(|rejection| {
        let at = match &rejection.plugin {
            Some(plugin) => pointer(plugin.as_str(), rejection.pointer),
            None => rejection.pointer.to_owned(),
        };
        Refusal::invalid(rejection.accepted).at(&at, DetailCode::InvalidValue)
    })
}

/// A JSON pointer below a selected plugin.
pub(crate) fn pointer(plugin: &str, below: &str) -> String {
    format!("/plugins/{}{below}", plugin.replace('~', "~0"))
}
