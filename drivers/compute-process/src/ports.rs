//! An Agent's loopback ports, kept for as long as they can be had.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::ErrorKind,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
};

use occ_core::reason::{PreparationReason, PreparationStage};

use crate::{
    error::{Error, Result},
    naming::{AgentPaths, Root},
    settings::PortRange,
    storage,
};

/// Tries for a port that is free for both address families and reserved by nobody.
const ATTEMPTS: usize = 64;
const PORTS_MAX_BYTES: u64 = 16 * 1024;

/// Port numbers by the names that a plan gives them.
pub(crate) type Ports = BTreeMap<String, u16>;

/// The Agent's ports, as far as they were chosen. Something unreadable counts as none: a port is no evidence of ownership.
pub(crate) fn chosen(agent: &AgentPaths) -> Result<Ports> {
    let content = storage::read(&agent.ports(), PORTS_MAX_BYTES)?;
    Ok(content
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default())
}

/// A number for each name: the Agent's own, chosen now if it has none or if another program took it. While the Agent itself
/// `serves`, its ports are in use and stay as they are.
pub(crate) fn claim(
    root: &Root,
    agent: &AgentPaths,
    names: &[String],
    range: Option<PortRange>,
    serves: bool,
) -> Result<Ports> {
    let before = chosen(agent)?;
    let mut ports = Ports::new();
    for name in names {
        let own = before
            .get(name)
            .copied()
            .filter(|port| serves || (within(range, *port) && free(*port)));
        let port = if let Some(port) = own {
            port
        } else {
            let mut taken = reserved(root, agent)?;
            taken.extend(before.values().chain(ports.values()));
            choose(range, &taken)?
        };
        ports.insert(name.clone(), port);
    }
    if ports != before {
        // A predecessor that serves keeps what only it uses.
        if serves {
            ports = before.into_iter().chain(ports).collect();
        }
        storage::write(&agent.ports(), &crate::ownership::encode(&ports)?)?;
    }
    Ok(ports)
}

fn within(range: Option<PortRange>, port: u16) -> bool {
    range.is_none_or(|range| (range.start..=range.end).contains(&port))
}

fn choose(range: Option<PortRange>, reserved: &BTreeSet<u16>) -> Result<u16> {
    let usable = |port: &u16| !reserved.contains(port) && free(*port);
    let port = match range {
        Some(range) => (range.start..=range.end).find(usable),
        None => (0..ATTEMPTS).filter_map(|_| any()).find(usable),
    };
    port.ok_or(Error::refused(
        PreparationStage::Layout,
        PreparationReason::PortUnavailable,
    ))
}

/// Ports of the other Agents, also of those that do not run: theirs should be free when they come back.
fn reserved(root: &Root, own: &AgentPaths) -> Result<BTreeSet<u16>> {
    let mut ports = BTreeSet::new();
    for namespace in storage::names(root.dir())? {
        let agents = root.dir().join(namespace).join("agents");
        for agent in storage::names(&agents)? {
            let paths = AgentPaths {
                dir: agents.join(agent),
            };
            if paths.dir != own.dir {
                ports.extend(chosen(&paths).unwrap_or_default().into_values());
            }
        }
    }
    Ok(ports)
}

fn any() -> Option<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    listener.local_addr().ok().map(|address| address.port())
}

/// Whether nobody listens on the port, on either loopback address. A machine without IPv6 has one to ask.
fn free(port: u16) -> bool {
    let v4 = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).is_ok();
    let v6 = match TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))) {
        Ok(_) => true,
        Err(error) => error.kind() != ErrorKind::AddrInUse,
    };
    v4 && v6
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agents(dir: &std::path::Path) -> (Root, AgentPaths, AgentPaths) {
        let root = Root::new(dir, "process");
        let namespace = root.namespace(occ_core::id::NamespaceId::random());
        let first = namespace.agent(occ_core::id::AgentId::random());
        let second = namespace.agent(occ_core::id::AgentId::random());
        storage::private_dirs(&first.dir).unwrap();
        storage::private_dirs(&second.dir).unwrap();
        (root, first, second)
    }

    fn one(root: &Root, agent: &AgentPaths, range: Option<PortRange>) -> Result<u16> {
        claim(root, agent, &["gateway".to_owned()], range, false).map(|ports| ports["gateway"])
    }

    #[test]
    fn a_port_is_kept_until_another_program_takes_it() {
        let dir = tempfile::tempdir().unwrap();
        let (root, first, _) = agents(dir.path());
        let port = one(&root, &first, None).unwrap();
        assert_eq!(one(&root, &first, None), Ok(port));
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let other = one(&root, &first, None).unwrap();
        assert_ne!(other, port);
        drop(taken);
        assert_eq!(one(&root, &first, None), Ok(other));
        let own = TcpListener::bind((Ipv4Addr::LOCALHOST, other)).unwrap();
        let kept = claim(&root, &first, &["gateway".to_owned()], None, true).unwrap();
        assert_eq!(kept["gateway"], other, "a gateway that serves does not lose its port");
        drop(own);
    }

    #[test]
    fn two_agents_do_not_share_a_port_and_a_range_can_run_out() {
        let dir = tempfile::tempdir().unwrap();
        let (root, first, second) = agents(dir.path());
        let port = one(&root, &first, None).unwrap();
        let range = PortRange { start: port, end: port };
        assert_eq!(one(&root, &first, Some(range)), Ok(port));
        let refused = Error::refused(PreparationStage::Layout, PreparationReason::PortUnavailable);
        assert_eq!(one(&root, &second, Some(range)), Err(refused));
    }

    #[test]
    fn each_name_has_a_number_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (root, first, _) = agents(dir.path());
        let names = ["gateway".to_owned(), "hooks".to_owned()];
        let ports = claim(&root, &first, &names, None, false).unwrap();
        assert_ne!(ports["gateway"], ports["hooks"]);
        assert_eq!(chosen(&first), Ok(ports));
    }
}
