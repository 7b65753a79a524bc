//! Defines what can be proposed, and checks it before anything of it is stored.

use platform_core::{id::AgentId, invalid::InvalidValue};
use runner_git::SecretScan;
use runner_model::behaviour::check_text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    entry::{entry_text, has_entry, with_entry},
    skill_name::SkillName,
};

/// Setting by which an entry is that of a gateway's agent, and its value.
const MODE: &str = "mode";
const GATEWAY: &str = "gateway";

/// Kind of a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProposalKind {
    /// Entry of an agent with a container for each run.
    Agent,
    /// Entry of an agent with runs in sessions of a gateway.
    GatewayAgent,
    /// Skill: a text that agents read.
    Skill,
}

/// Content of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ProposalContent {
    /// Entry of an agent with a container for each run.
    Agent {
        /// The agent.
        agent: AgentId,
        /// Its entry, in TOML.
        entry: String,
    },
    /// Entry of an agent with runs in sessions of a gateway.
    GatewayAgent {
        /// The agent.
        agent: AgentId,
        /// Its entry, in TOML.
        entry: String,
    },
    /// Skill.
    Skill {
        /// Its name, that of its directory.
        name: SkillName,
        /// Its whole text, in Markdown.
        text: String,
    },
}

/// Part of a proposal that cannot be proposed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}`: {problem}")]
pub struct InvalidContent {
    /// The part, as the API calls it.
    pub field: &'static str,
    /// Its problem.
    pub problem: InvalidValue,
}

impl ProposalKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Agent, Self::GatewayAgent, Self::Skill];

    /// Returns the word by which programs name it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::GatewayAgent => "gatewayAgent",
            Self::Skill => "skill",
        }
    }

    /// Returns the words for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::GatewayAgent => "gateway agent",
            Self::Skill => "skill",
        }
    }
}

impl InvalidContent {
    fn new(field: &'static str, problem: impl Into<InvalidValue>) -> Self {
        Self { field, problem: problem.into() }
    }
}

impl ProposalContent {
    /// Takes an entry of an agent with a container for each run.
    ///
    /// # Errors
    /// If a setting has no form in TOML, the entry is that of a gateway's agent, or it holds a secret.
    pub fn of_agent(agent: AgentId, settings: &Map<String, Value>) -> Result<Self, InvalidContent> {
        if is_of_gateway(settings) {
            let problem = "its `mode` is `gateway`: propose it as an agent of a gateway";
            return Err(InvalidContent::new("settings", problem));
        }
        let entry = checked_entry(&agent, settings)?;
        Ok(Self::Agent { agent, entry })
    }

    /// Takes an entry of an agent with runs in sessions of a gateway.
    ///
    /// # Errors
    /// If a setting has no form in TOML, the entry is that of another agent, or it holds a secret.
    pub fn of_gateway_agent(agent: AgentId, settings: &Map<String, Value>) -> Result<Self, InvalidContent> {
        if !is_of_gateway(settings) {
            let problem = "an agent of a gateway has `mode` `gateway`, and `gateways`";
            return Err(InvalidContent::new("settings", problem));
        }
        let entry = checked_entry(&agent, settings)?;
        Ok(Self::GatewayAgent { agent, entry })
    }

    /// Takes a skill.
    ///
    /// # Errors
    /// If its name is not plain, or people cannot read its text as it is, or it holds a secret.
    pub fn of_skill(name: &str, text: String) -> Result<Self, InvalidContent> {
        let name = SkillName::parse(name).map_err(|problem| InvalidContent::new("name", problem))?;
        if text.trim().is_empty() {
            return Err(InvalidContent::new("text", "it is empty"));
        }
        check_text(&text).map_err(|problem| InvalidContent::new("text", problem))?;
        check_secrets("text", &text)?;
        Ok(Self::Skill { name, text })
    }

    /// Returns its kind.
    #[must_use]
    pub const fn kind(&self) -> ProposalKind {
        match self {
            Self::Agent { .. } => ProposalKind::Agent,
            Self::GatewayAgent { .. } => ProposalKind::GatewayAgent,
            Self::Skill { .. } => ProposalKind::Skill,
        }
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Agent { agent, .. } | Self::GatewayAgent { agent, .. } => agent.as_str(),
            Self::Skill { name, .. } => name.as_str(),
        }
    }

    /// Returns the text that it adds.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Agent { entry, .. } | Self::GatewayAgent { entry, .. } => entry,
            Self::Skill { text, .. } => text,
        }
    }

    /// Returns the agent of the entry.
    #[must_use]
    pub const fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent { agent, .. } | Self::GatewayAgent { agent, .. } => Some(agent),
            Self::Skill { .. } => None,
        }
    }

    /// Returns the text that a file with the text `before` gets.
    #[must_use]
    pub fn applied_to(&self, before: &str) -> String {
        match self {
            Self::Agent { agent, entry } | Self::GatewayAgent { agent, entry } => {
                with_entry(before, agent, entry).0
            }
            Self::Skill { text, .. } => text.clone(),
        }
    }

    /// Returns whether a file has it.
    #[must_use]
    pub fn is_in(&self, file: &str) -> bool {
        match self {
            Self::Agent { agent, entry } | Self::GatewayAgent { agent, entry } => {
                has_entry(file, agent, entry)
            }
            Self::Skill { text, .. } => file == text,
        }
    }
}

fn is_of_gateway(settings: &Map<String, Value>) -> bool {
    settings.get(MODE).and_then(Value::as_str) == Some(GATEWAY)
}

fn checked_entry(agent: &AgentId, settings: &Map<String, Value>) -> Result<String, InvalidContent> {
    // The problem names the setting already.
    let entry = entry_text(agent, settings).map_err(|problem| InvalidContent::new("settings", problem))?;
    check_secrets("settings", &entry)?;
    Ok(entry)
}

fn check_secrets(field: &'static str, text: &str) -> Result<(), InvalidContent> {
    match SecretScan::default().find_in_text(text.as_bytes()) {
        Some(secret) => {
            let problem = format!("it holds a {secret}, and would be published: name a file or a variable");
            Err(InvalidContent::new(field, problem))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn agent() -> AgentId {
        AgentId::parse("team:a").unwrap()
    }

    #[test]
    fn a_text_is_what_people_read_and_no_secret() {
        let token = ["gh", "p_"].concat() + &"a1B2".repeat(9);
        for text in
            ["", " \n", "a\u{202e}b", "a\u{1b}[2K", &format!("Use {token}"), &"x".repeat((256 << 10) + 1)]
        {
            let refused = ProposalContent::of_skill("greet", text.to_owned()).unwrap_err();
            assert_eq!(refused.field, "text", "{text:.20}");
        }
        assert!(ProposalContent::of_skill("greet", "Use a token.\n".to_owned()).is_ok(), "the control");
        let secret = settings(json!({ "image": "a", "argv": [token] }));
        let refused = ProposalContent::of_agent(agent(), &secret).unwrap_err().to_string();
        assert!(refused.contains("GitHub token") && !refused.contains(&token), "{refused}");
    }

    #[test]
    fn an_agent_is_proposed_as_what_it_is() {
        let own = settings(json!({ "image": "a", "argv": ["b"] }));
        let of_gateway = settings(json!({ "mode": "gateway", "gateways": ["main"], "gateway_agent": "bot" }));
        assert!(ProposalContent::of_agent(agent(), &own).is_ok());
        assert!(ProposalContent::of_gateway_agent(agent(), &of_gateway).is_ok());
        assert!(ProposalContent::of_agent(agent(), &of_gateway).is_err());
        assert!(ProposalContent::of_gateway_agent(agent(), &own).is_err());
    }

    #[test]
    fn what_is_in_a_file_is_found_there() {
        let own = settings(json!({ "image": "a" }));
        let skill = ProposalContent::of_skill("greet", "# Hi\n".to_owned()).unwrap();
        for (content, before) in [
            (ProposalContent::of_agent(agent(), &own).unwrap(), "[api]\nx = 1\n"),
            (
                ProposalContent::of_agent(agent(), &own).unwrap(),
                "[agents.'team:a']\nimage = 'b'\n\n\n[api]\n",
            ),
            (skill, ""),
        ] {
            assert!(!content.is_in(before), "{before}");
            let after = content.applied_to(before);
            assert!(content.is_in(&after), "{after}");
            assert_eq!(content.applied_to(&after), after, "twice is once");
        }
    }
}
