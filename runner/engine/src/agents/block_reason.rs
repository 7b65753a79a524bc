//! Finds the reasons that block an agent. Pure.

use std::fmt;

use platform_core::{
    control::offers,
    id::{GatewayId, ModelName},
};
use platform_runtime::settings::{Agent, Execution, Image};
use runner_docker as docker;

use super::HostFacts;

/// Reason why an agent cannot run, or runs only with certain requests. Its text names the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockReason {
    /// None of the agent's gateways can be reached. The reason names the first one.
    NoGateway {
        /// The gateway.
        gateway: GatewayId,
        /// Error, and its fix.
        why: String,
    },
    /// Docker does not answer.
    NoDocker {
        /// Error, and its fix.
        why: String,
    },
    /// The agent's image is not on this host.
    NoImage(Image),
    /// The image of an agent that ships without one was not built on this host.
    NotInstalled(Image),
    /// A volume of the agent is not on this host.
    NoVolume(String),
    /// Docker failed to answer a request.
    Unknown {
        /// Error of Docker.
        why: String,
    },
    /// The agent names no model, and no default model is configured.
    NoModel,
    /// The model that the agent requests is not among its granted models.
    NotGranted {
        /// The model.
        model: String,
        /// Models that are granted to the agent.
        models: Vec<ModelName>,
    },
    /// The upstream does not offer the model that the agent requests.
    NotOffered {
        /// The model.
        model: String,
        /// Examples of models that the upstream offers.
        offered: Vec<String>,
        /// Number of models that it offers besides.
        others: usize,
    },
    /// The upstream does not offer some of the agent's granted models, but that which it asks for by default.
    SomeNotOffered {
        /// These models.
        models: Vec<ModelName>,
    },
}

impl BlockReason {
    /// Returns the code of the reason.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NoGateway { .. } => "gateway_unavailable",
            Self::NoDocker { .. } => "docker_unavailable",
            Self::NoImage(_) => "image_missing",
            Self::NotInstalled(_) => "not_installed",
            Self::NoVolume(_) => "volume_missing",
            Self::Unknown { .. } => "docker_failed",
            Self::NoModel => "model_missing",
            Self::NotGranted { .. } => "model_not_granted",
            Self::NotOffered { .. } => "model_not_offered",
            Self::SomeNotOffered { .. } => "models_not_offered",
        }
    }

    /// Returns whether the facts could not be looked up. The agent may be able to run in spite of the reason.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::NoDocker { .. } | Self::Unknown { .. })
    }

    /// Returns whether some requests run in spite of the reason.
    pub const fn is_advisory(&self) -> bool {
        matches!(self, Self::NoModel | Self::SomeNotOffered { .. })
    }

    /// Returns whether this host or its configuration has a fault.
    pub const fn is_fault(&self) -> bool {
        !matches!(self, Self::NoModel | Self::NotInstalled(_) | Self::SomeNotOffered { .. })
    }

    /// Returns whether the reason prevents the creation of a container.
    pub const fn is_on_docker(&self) -> bool {
        self.is_unknown() || matches!(self, Self::NoImage(_) | Self::NotInstalled(_) | Self::NoVolume(_))
    }
}

impl BlockReason {
    /// Returns the same reason for an agent that an installation may do without.
    pub(super) fn of_optional(self) -> Self {
        match self {
            Self::NoImage(image) => Self::NotInstalled(image),
            other => other,
        }
    }
}

impl fmt::Display for BlockReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGateway { gateway, why } => write!(f, "gateway {gateway} cannot be reached: {why}"),
            Self::NoDocker { why } | Self::Unknown { why } => {
                write!(f, "cannot tell whether it can run: {why}")
            }
            Self::NoImage(image) => docker::Error::NoImage { image: image.clone() }.fmt(f),
            Self::NotInstalled(image) => {
                write!(f, "its image {image} is not on this host: `sluice images load FILE` brings it from an archive")
            }
            Self::NoVolume(volume) => docker::Error::NoVolume { volume: volume.clone() }.fmt(f),
            Self::NoModel => f.write_str("it has no model and runs only with `sluice run --model`: set its `model`, or upstream.default_model"),
            Self::NotGranted { model, models } => {
                let models: Vec<_> = models.iter().map(ModelName::as_str).collect();
                write!(
                    f,
                    "its model {model} is not among its `models`: add it there, or set `model` to one of {}",
                    models.join(", ")
                )
            }
            Self::NotOffered { model, offered, others } => {
                let offered = offered.join(", ");
                write!(f, "the upstream does not offer its model {model} to the gateway's key: add it there, or set `model` to one of {offered}")?;
                if *others > 0 { write!(f, ", and {others} more") } else { Ok(()) }
            }
            Self::SomeNotOffered { models } => {
                let models: Vec<_> = models.iter().map(ModelName::as_str).collect();
                write!(f, "the gateway's key may not use {} of its `models`: add them to the key, or remove them here", models.join(", "))
            }
        }
    }
}

/// Maximum number of models that a message suggests.
const MAX_EXAMPLES: usize = 5;

/// Returns the known reasons that block `agent`. `model` is the default for an agent that names none. Unknown facts are
/// no reason.
pub fn block_reasons(agent: &Agent, model: Option<&str>, facts: &HostFacts) -> Vec<BlockReason> {
    let mut reasons = match agent.mode {
        Execution::Ephemeral => docker_reasons(agent, facts),
        Execution::Gateway => gateway_reason(agent, facts).into_iter().collect(),
    };
    reasons.extend(model_reason(agent, agent.model.as_deref().or(model), facts));
    reasons
}

/// Returns the reason if `agent` can reach none of its gateways.
fn gateway_reason(agent: &Agent, facts: &HostFacts) -> Option<BlockReason> {
    let mut errors = agent.gateways.iter().map(|id| (id, facts.gateways.get(id)));
    let (gateway, why) = errors.next()?;
    let why = why.filter(|_| errors.all(|(_, why)| why.is_some()))?;
    Some(BlockReason::NoGateway { gateway: gateway.clone(), why: why.clone() })
}

/// Returns a reason for each image or volume that `agent` needs and Docker lacks.
fn docker_reasons(agent: &Agent, facts: &HostFacts) -> Vec<BlockReason> {
    match &facts.docker {
        Err(why) => vec![BlockReason::NoDocker { why: why.to_string() }],
        Ok(missing) => {
            let image = missing.images.get(&agent.image);
            let volumes = agent.volumes.iter().map(|volume| missing.volumes.get(&volume.volume));
            std::iter::once(image).chain(volumes).flatten().cloned().collect()
        }
    }
}

/// Returns the reason if `agent` cannot use `model`.
fn model_reason(agent: &Agent, model: Option<&str>, facts: &HostFacts) -> Option<BlockReason> {
    let Some(model) = model else { return Some(BlockReason::NoModel) };
    let is_granted = agent.models.is_empty() || agent.models.iter().any(|granted| granted.as_str() == model);
    if !is_granted {
        return Some(BlockReason::NotGranted { model: model.to_owned(), models: agent.models.clone() });
    }
    let all = facts.models.as_ref()?;
    let is_offered = |model: &str| offers(all, model);
    if is_offered(model) {
        let lacking: Vec<_> =
            agent.models.iter().filter(|model| !is_offered(model.as_str())).cloned().collect();
        return (!lacking.is_empty()).then_some(BlockReason::SomeNotOffered { models: lacking });
    }
    let offered = all.iter().take(MAX_EXAMPLES).cloned().collect();
    let others = all.len().saturating_sub(MAX_EXAMPLES);
    Some(BlockReason::NotOffered { model: model.to_owned(), offered, others })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use platform_runtime::{
        config::Sources,
        report::ErrorText,
        settings::{DEFAULT_AGENT, Settings},
    };

    use super::*;
    use crate::agents::{AgentStatus, default_agent, host_facts::MissingOnDocker, judge};

    const AGENTS: &str = "[agents.'a:pinned']\nargv = ['node', '/agent/run.mjs']\nimage = 'a:1'\nmodel = 'gpt-4o'\n\
        [agents.'a:volume']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nvolumes = [{ volume = 'data', container_path = '/data' }, { volume = 'typo', container_path = '/t' }]\n\
        [agents.'a:gateway']\nmode = 'gateway'\ngateways = ['g']\n[gateways.g]\n";

    fn codes(facts: &HostFacts) -> Vec<(String, Vec<&'static str>)> {
        let file = Some(("s.toml".into(), AGENTS.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let statuses = judge(&settings.agents, Some("fake"), facts);
        let default = default_agent(&statuses).map(ToString::to_string);
        let can_run = statuses.iter().find(|agent| agent.id.as_str() == DEFAULT_AGENT).unwrap().can_run();
        assert_eq!(default.is_some(), can_run, "what cannot run is not a default");
        let codes = |agent: &AgentStatus| agent.block_reasons.iter().map(BlockReason::code).collect();
        let others = statuses.iter().filter(|agent| agent.id.as_str() != "sandbox:openclaw");
        others.map(|agent| (agent.id.to_string(), codes(agent))).collect()
    }

    #[test]
    fn an_optional_agent_may_lack_its_image() {
        let reasons = |entry: &str| {
            let file = Some(("s.toml".into(), entry.to_owned()));
            let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
            let image: Image = "sluicegate/sandbox-openclaw:latest".parse().unwrap();
            let images = [(image.clone(), BlockReason::NoImage(image))].into();
            let docker = Ok(MissingOnDocker { images, ..MissingOnDocker::default() });
            let facts = HostFacts { docker, models: None, gateways: BTreeMap::new() };
            let statuses = judge(&settings.agents, Some("fake"), &facts);
            let agent = statuses.into_iter().find(|agent| agent.id.as_str() == "sandbox:openclaw").unwrap();
            assert!(!agent.can_run());
            agent.block_reasons.iter().map(|reason| (reason.code(), reason.is_fault())).collect::<Vec<_>>()
        };
        assert_eq!(reasons(""), [("not_installed", false)]);
        // Control: an operator who changes the entry wants to use it.
        assert_eq!(reasons("[agents.'sandbox:openclaw']\npids = 300\n"), [("image_missing", true)]);
    }

    fn expected<'c>(of: [(&str, &[&'c str]); 4]) -> Vec<(String, Vec<&'c str>)> {
        of.map(|(id, codes)| (id.to_owned(), codes.to_vec())).into()
    }

    #[test]
    fn a_missing_need_blocks_only_its_agents() {
        let unreachable: BTreeMap<_, _> = [("g".parse().unwrap(), "it is down".to_owned())].into();
        let no_facts =
            HostFacts { docker: Ok(MissingOnDocker::default()), models: None, gateways: unreachable.clone() };
        let gateway = ("a:gateway", &["gateway_unavailable"][..]);
        let free: &[&str] = &[];
        let all = expected([gateway, ("a:pinned", free), ("a:volume", free), (DEFAULT_AGENT, free)]);
        assert_eq!(codes(&no_facts), all, "unknown facts block no agent");

        let image: Image = "a:1".parse().unwrap();
        let docker = MissingOnDocker {
            images: [(image.clone(), BlockReason::NoImage(image))].into(),
            volumes: [("typo".to_owned(), BlockReason::NoVolume("typo".to_owned()))].into(),
        };
        let models = Some(vec!["fake".to_owned(), "gpt-3*".to_owned()]);
        let missing = codes(&HostFacts { docker: Ok(docker), models, gateways: unreachable.clone() });
        let pinned = ("a:pinned", &["image_missing", "model_not_offered"][..]);
        assert_eq!(
            missing,
            expected([gateway, pinned, ("a:volume", &["volume_missing"]), (DEFAULT_AGENT, free)])
        );

        let docker_unavailable = codes(&HostFacts {
            docker: Err(ErrorText("start Docker".to_owned())),
            models: Some(vec!["*".to_owned()]),
            gateways: unreachable,
        });
        let unavailable = |id| (id, &["docker_unavailable"][..]);
        assert_eq!(
            docker_unavailable,
            expected([gateway, unavailable("a:pinned"), unavailable("a:volume"), unavailable(DEFAULT_AGENT)])
        );
    }

    #[test]
    fn an_agent_without_a_usable_model_is_blocked() {
        let file = "[agents.'a:b']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmodels = ['one', 'two']\n";
        let codes_of_key = |entry: &str, default: Option<&str>, offered: &str| {
            let file = Some(("s.toml".into(), format!("{file}{entry}")));
            let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
            let facts = HostFacts {
                docker: Ok(MissingOnDocker::default()),
                models: Some(vec![offered.to_owned()]),
                gateways: BTreeMap::new(),
            };
            let statuses = judge(&settings.agents, default, &facts);
            let agent = statuses.iter().find(|agent| agent.id.as_str() == "a:b").unwrap();
            agent.block_reasons.iter().map(|reason| format!("{} {reason}", reason.code())).collect::<Vec<_>>()
        };
        let codes = |entry: &str, default: Option<&str>| codes_of_key(entry, default, "*");
        assert!(codes("model = 'one'", None).is_empty() && codes("", Some("two")).is_empty());
        // A virtual key of LiteLLM shows only its own models.
        let said = codes_of_key("model = 'one'", None, "one");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("models_not_offered the gateway's key may not use two of"), "{said:?}");
        // Control: an agent can run if its requests name the model.
        let file = Some(("s.toml".into(), file.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        let statuses = judge(
            &settings.agents,
            None,
            &HostFacts { docker: Ok(MissingOnDocker::default()), models: None, gateways: BTreeMap::new() },
        );
        assert!(
            statuses.iter().all(AgentStatus::can_run)
                && statuses.iter().filter(|agent| agent.can_run()).count() == 3
        );
        let missing = codes("", None);
        assert!(missing.len() == 1 && missing[0].starts_with("model_missing it has no model"), "{missing:?}");
        for (entry, default) in [("model = 'three'", None), ("", Some("three"))] {
            let refused = codes(entry, default);
            assert!(refused[0].starts_with("model_not_granted its model three is not among"), "{refused:?}");
            assert!(refused.len() == 1 && refused[0].ends_with("one of one, two"), "{refused:?}");
        }
    }

    #[test]
    fn models_that_are_not_named_are_counted() {
        let reason = |others| {
            let offered = vec!["a".to_owned(), "b".to_owned()];
            BlockReason::NotOffered { model: "c".to_owned(), offered, others }.to_string()
        };
        assert!(reason(0).ends_with("one of a, b"), "{}", reason(0));
        assert!(reason(12).ends_with("one of a, b, and 12 more"), "{}", reason(12));
    }
}
