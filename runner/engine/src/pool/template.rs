//! Collects the settings that Docker fixes at the creation of a container, and derives the template id from them. A run
//! can claim only its own warm container template.

use std::path::Path;

use platform_core::id::AgentId;
use platform_runtime::settings::Agent;
use runner_docker::ContainerSettings;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::context::EngineHandles;

/// Number of digits of a template's id.
const ID_DIGITS: usize = 32;

/// Settings that must not differ between containers of one template.
#[derive(Serialize)]
pub(crate) struct ContainerTemplate<'m> {
    /// Version of this program: another release may create containers differently.
    program: &'static str,
    agent: &'m AgentId,
    image: &'m str,
    settings: ContainerSettings,
    /// Kind, size and location of a workspace.
    workspace: String,
    /// Control socket of the data plane that has the containers' listeners.
    proxy: &'m Path,
}

impl<'m> ContainerTemplate<'m> {
    /// Returns the template from which containers of an agent are created on this host, from the image with this id.
    pub(crate) fn new(
        engine: &'m EngineHandles,
        agent_id: &'m AgentId,
        agent: &'m Agent,
        image: &'m str,
    ) -> Self {
        let workspace = engine.workspaces.sized(agent.disk).describe();
        Self { workspace, proxy: engine.data_plane.socket(), ..Self::of_agent(agent_id, agent, image) }
    }

    fn of_agent(agent_id: &'m AgentId, agent: &'m Agent, image: &'m str) -> Self {
        Self {
            program: env!("CARGO_PKG_VERSION"),
            agent: agent_id,
            image,
            settings: ContainerSettings::of(agent),
            workspace: String::new(),
            proxy: Path::new(""),
        }
    }

    /// Returns the id of the template. Containers with the same id are interchangeable.
    pub(crate) fn id(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        let mut id: String = Sha256::digest(json).iter().map(|byte| format!("{byte:02x}")).collect();
        id.truncate(ID_DIGITS);
        id
    }
}

#[cfg(test)]
mod tests {
    use platform_runtime::{
        config::Sources,
        settings::{DEFAULT_AGENT, Settings, Template, Volume},
    };

    use super::*;

    #[test]
    fn only_settings_fixed_by_docker_change_the_id() {
        let settings = Settings::read(&Sources::default()).unwrap();
        let (id, agent) = settings.agents.iter().find(|(id, _)| id.as_str() == DEFAULT_AGENT).unwrap();
        let template = |agent: &Agent, image, workspace: &str| {
            let workspace = workspace.to_owned();
            let proxy = Path::new("/run/control.sock");
            ContainerTemplate { workspace, proxy, ..ContainerTemplate::of_agent(id, agent, image) }.id()
        };
        let usual = template(agent, "sha256:1", "1 GiB in /w");
        let same = |change: fn(&mut Agent)| {
            let mut other = agent.clone();
            change(&mut other);
            template(&other, "sha256:1", "1 GiB in /w") == usual
        };
        let fixed: [fn(&mut Agent); 8] = [
            |agent| agent.memory.0 += 1,
            |agent| agent.pids += 1,
            |agent| agent.milli_cpu += 1,
            |agent| agent.output_capture_limit.0 += 1,
            |agent| agent.tmp_size.0 += 1,
            |agent| agent.shm_size.0 += 1,
            |agent| agent.bridge_port += 1,
            |agent| {
                let volume = "v".to_owned();
                let container_path = "/v".to_owned();
                agent.volumes.push(Volume { volume, container_path, read_only: true });
            },
        ];
        for (index, change) in fixed.into_iter().enumerate() {
            assert!(!same(change), "{index}");
        }
        let free: [fn(&mut Agent); 5] = [
            |agent| agent.name.push('x'),
            |agent| agent.argv = vec![Template::literal("other")],
            |agent| agent.environment = [("A".to_owned(), Template::literal("b"))].into(),
            |agent| agent.model = Some("other".to_owned()),
            |agent| agent.run_timeout.0 += 1,
        ];
        for (index, change) in free.into_iter().enumerate() {
            assert!(same(change), "{index}");
        }
        assert_ne!(template(agent, "sha256:2", "1 GiB in /w"), usual);
        assert_ne!(template(agent, "sha256:1", "2 GiB in /w"), usual);
        assert_eq!(usual.len(), ID_DIGITS);
    }
}
