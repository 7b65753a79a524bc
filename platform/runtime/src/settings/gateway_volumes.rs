//! Collects the volumes that a managed gateway mounts for its agents, and finds those that cannot be mounted together.
//!
//! A gateway is one container: each of its agents finds the volumes of all.

use platform_core::id::{AgentId, GatewayId};

use super::{Execution, Settings, Volume, agents::is_below};
use crate::config::{About, ValidationError};

/// Paths of a managed gateway's own files, in addition to those of every sandbox.
const OWN_PATHS: [&str; 3] = ["/config", "/bridge", "/opt/openclaw"];

/// Returns the volumes of all agents that are sessions in a gateway, each once, with the first agent that has it.
pub(super) fn of<'s>(settings: &'s Settings, gateway: &GatewayId) -> Vec<(&'s AgentId, &'s Volume)> {
    let is_session = |agent: &super::Agent| {
        agent.mode == Execution::Gateway && agent.gateways.iter().any(|id| id == gateway)
    };
    let agents = settings.agents.iter().filter(|(_, agent)| is_session(agent));
    let mut volumes: Vec<(&AgentId, &Volume)> = Vec::new();
    for (id, volume) in agents.flat_map(|(id, agent)| agent.volumes.iter().map(move |volume| (id, volume))) {
        if volumes.iter().all(|(_, known)| *known != volume) {
            volumes.push((id, volume));
        }
    }
    volumes
}

/// Returns volumes that a managed gateway cannot mount.
pub(super) fn errors(settings: &Settings) -> Vec<ValidationError> {
    let managed = settings.gateways.iter().filter(|(_, gateway)| gateway.is_managed());
    managed.flat_map(|(id, _)| errors_of(settings, id)).collect()
}

fn errors_of(settings: &Settings, gateway: &GatewayId) -> Vec<ValidationError> {
    let volumes = of(settings, gateway);
    let mut errors = Vec::new();
    for (at, (agent, volume)) in volumes.iter().enumerate() {
        let Volume { volume: name, container_path: path, .. } = volume;
        let own = OWN_PATHS.iter().find(|own| is_below(path, own) || is_below(own, path));
        let rival = volumes[..at].iter().find(|(_, other)| volume.overlaps(other));
        let problem = match (own, rival) {
            (Some(own), _) => format!("`{name}` at {path}: {own} is gateway {gateway}'s own"),
            (None, Some((other, known))) => format!(
                "`{name}` at {path}: gateway {gateway} has `{}` at {} for {other}, and is one container for both",
                known.volume, known.container_path
            ),
            (None, None) => continue,
        };
        errors.push(ValidationError { about: About::Setting(format!("agents.{agent}.volumes")), problem });
    }
    errors
}
