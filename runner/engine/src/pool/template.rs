//! Names the settings that Docker fixes when it creates a container. Containers that are created before their run is
//! known have them in common.

use std::path::Path;

use platform_core::{id::AgentId, limit::ByteSize};
use platform_runtime::settings::{Agent, Volume};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::context::EngineHandles;

/// Digits of a template's name.
const DIGITS: usize = 32;

/// Settings that must not differ between containers of one template.
#[derive(Serialize)]
struct ContainerTemplate<'m> {
    /// Version of this program: another release may create them differently.
    program: &'static str,
    agent: &'m AgentId,
    image: &'m str,
    volumes: &'m [Volume],
    /// Kind, size and location of a workspace.
    workspace: String,
    /// Control socket of the data plane whose sockets they have.
    proxy: &'m Path,
    memory: ByteSize,
    pids: u32,
    milli_cpu: u32,
    output: ByteSize,
}

/// Returns the id of the template from which containers of an agent are created on `host`, from the image with this id.
/// Containers with the same id are alike.
pub(crate) fn template(host: &EngineHandles, (id, agent): (&AgentId, &Agent), image: &str) -> String {
    let workspace = host.workspaces.sized(agent.disk).describe();
    name((id, agent), image, (workspace, host.data_plane.socket()))
}

fn name((id, agent): (&AgentId, &Agent), image: &str, (workspace, proxy): (String, &Path)) -> String {
    let Agent { volumes, memory, pids, milli_cpu, output, .. } = agent;
    let template = ContainerTemplate {
        program: env!("CARGO_PKG_VERSION"),
        agent: id,
        image,
        volumes,
        workspace,
        proxy,
        memory: *memory,
        pids: *pids,
        milli_cpu: *milli_cpu,
        output: *output,
    };
    let text = serde_json::to_vec(&template).unwrap_or_default();
    let mut name: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    name.truncate(DIGITS);
    name
}

#[cfg(test)]
mod tests {
    use platform_runtime::{
        config::Sources,
        settings::{DEFAULT_AGENT, Settings, Template},
    };

    use super::*;

    #[test]
    fn what_docker_fixes_tells_templates_apart_and_nothing_else_does() {
        let settings = Settings::read(&Sources::default()).unwrap();
        let (id, agent) = settings.agents.iter().find(|(id, _)| id.as_str() == DEFAULT_AGENT).unwrap();
        let template = |agent: &Agent, image, workspace: &str| {
            name((id, agent), image, (workspace.to_owned(), Path::new("/run/control.sock")))
        };
        let usual = template(agent, "sha256:1", "1 GiB in /w");
        let same = |change: fn(&mut Agent)| {
            let mut other = agent.clone();
            change(&mut other);
            template(&other, "sha256:1", "1 GiB in /w") == usual
        };
        let fixed: [fn(&mut Agent); 5] = [
            |agent| agent.memory.0 += 1,
            |agent| agent.pids += 1,
            |agent| agent.milli_cpu += 1,
            |agent| agent.output.0 += 1,
            |agent| {
                let (volume, container_path) = ("v".to_owned(), "/v".to_owned());
                agent.volumes.push(Volume { volume, container_path, read_only: true });
            },
        ];
        for (at, change) in fixed.into_iter().enumerate() {
            assert!(!same(change), "{at}");
        }
        let free: [fn(&mut Agent); 5] = [
            |agent| agent.name.push('x'),
            |agent| agent.argv = vec![Template::literal("other")],
            |agent| agent.environment = [("A".to_owned(), Template::literal("b"))].into(),
            |agent| agent.model = Some("other".to_owned()),
            |agent| agent.runtime.0 += 1,
        ];
        for (at, change) in free.into_iter().enumerate() {
            assert!(same(change), "{at}");
        }
        assert_ne!(template(agent, "sha256:2", "1 GiB in /w"), usual);
        assert_ne!(template(agent, "sha256:1", "2 GiB in /w"), usual);
        assert_eq!(usual.len(), DIGITS);
    }
}
