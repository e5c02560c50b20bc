//! A Namespace's directory.

use occ_core::{
    driver::{Fault, FaultKind, NamespaceState, Terminal},
    id::NamespaceId,
    resource::Namespace,
};

use crate::{
    error::{Error, Result},
    guard::Guard,
    ownership,
    place::Instance,
    storage,
};

/// Makes the directory, or finds it. There is nothing on a host that could be adopted instead.
pub(crate) fn ensure(instance: &Instance, namespace: &Namespace) -> Result<NamespaceState> {
    if namespace.existing_namespace.is_some() {
        return Err(Error::Terminal(Terminal::ConfigurationInvalid));
    }
    instance.claim_namespace(namespace.id)?;
    Ok(NamespaceState {
        namespace_id: namespace.id,
        done: true,
    })
}

/// Removes the directory, if it is this driver's and no Agent is left in it.
pub(crate) fn delete(instance: &Instance, id: NamespaceId) -> Result<NamespaceState> {
    let done = NamespaceState {
        namespace_id: id,
        done: true,
    };
    let Some(paths) = instance.find_namespace(id)? else {
        ownership::discard(&instance.root.namespace(id).dir)?;
        return Ok(done);
    };
    let Some(_guard) = Guard::enter(&paths.dir)? else {
        return Ok(done);
    };
    let names = storage::names(&paths.agents())?;
    // What an interrupted creation or removal left beside an Agent's name is no Agent.
    if names.iter().any(|name| !name.starts_with('.')) {
        return Err(Fault::new("remove a Namespace that still has Agents", FaultKind::Conflict).into());
    }
    ownership::discard(&paths.dir)?;
    Ok(done)
}
