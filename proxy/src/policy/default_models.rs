//! Finds the model of runs that name none.

use std::collections::BTreeMap;

use platform_core::{grant::RunGrant, id::AgentId};
use platform_runtime::settings::Settings;

/// Models of runs that name none.
#[derive(Debug, Clone, Default)]
pub(crate) struct DefaultModels {
    of_agents: BTreeMap<AgentId, String>,
    otherwise: Option<String>,
}

impl DefaultModels {
    /// Returns those that `settings` name.
    pub(crate) fn of(settings: &Settings) -> Self {
        let of_agents = settings.agents.iter();
        Self {
            of_agents: of_agents.filter_map(|(id, agent)| Some((id.clone(), agent.model.clone()?))).collect(),
            otherwise: settings.upstream.default_model.clone(),
        }
    }

    /// Returns that of the agent that runs under `grant`, else the one of all.
    pub(crate) fn of_run(&self, grant: &RunGrant) -> Option<&str> {
        self.of_agents.get(&grant.graph).or(self.otherwise.as_ref()).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_own_model_is_its_default() {
        let grant = |graph: &str| -> RunGrant {
            serde_json::from_str(&format!(r#"{{"run_id":"r1","account":"a","graph":"{graph}"}}"#)).unwrap()
        };
        let models = DefaultModels {
            of_agents: [(AgentId::parse("sandbox:agent").unwrap(), "own".to_owned())].into(),
            otherwise: Some("usual".to_owned()),
        };
        assert_eq!(models.of_run(&grant("sandbox:agent")), Some("own"));
        assert_eq!(models.of_run(&grant("sandbox:other")), Some("usual"));
        assert_eq!(DefaultModels::default().of_run(&grant("sandbox:agent")), None);
    }
}
