//! Reads orders of proposals.

use axum::http::HeaderMap;
use platform_core::id::{AgentId, ProposalId};
use runner_proposals::{InvalidContent, ProposalContent, ProposalOrder};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    error::Error,
    operation::schemas,
    runs::{IDEMPOTENCY_KEY, MAX_KEY},
};

/// Largest body: a skill of the largest size, in which characters may be escaped.
pub(super) const MAX_BODY: usize = 1 << 20;

/// Proposal, as a client sends it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewProposal)]
#[serde(tag = "kind", rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum ProposalBody {
    /// Entry of an agent with a container for each run.
    #[serde(rename_all = "camelCase")]
    Agent {
        #[schema(value_type = schemas::AgentId)]
        agent_id: String,
        #[schema(value_type = schemas::AgentSettings)]
        settings: Map<String, Value>,
    },
    /// Entry of an agent with runs in sessions of a gateway: `mode` is `gateway`, and `gateways` names it.
    #[serde(rename_all = "camelCase")]
    GatewayAgent {
        #[schema(value_type = schemas::AgentId)]
        agent_id: String,
        #[schema(value_type = schemas::AgentSettings)]
        settings: Map<String, Value>,
    },
    /// Skill: the file `SKILL.md` in its directory below `agents_repository.skills`.
    Skill {
        #[schema(value_type = schemas::SkillName)]
        name: String,
        /// Whole text of the file in Markdown, of at most 256 KiB.
        #[schema(pattern = r"\S")]
        text: String,
    },
}

impl ProposalBody {
    /// Returns what is proposed, if it can be.
    pub(super) fn content(self) -> Result<ProposalContent, Error> {
        let content = match self {
            Self::Agent { agent_id, settings } => ProposalContent::of_agent(agent(&agent_id)?, &settings),
            Self::GatewayAgent { agent_id, settings } => {
                ProposalContent::of_gateway_agent(agent(&agent_id)?, &settings)
            }
            Self::Skill { name, text } => ProposalContent::of_skill(&name, text),
        };
        content.map_err(|error: InvalidContent| Error::Invalid(error.to_string()))
    }
}

fn agent(id: &str) -> Result<AgentId, Error> {
    AgentId::parse(id).map_err(|error| Error::Invalid(format!("`agentId`: {error}")))
}

/// Returns the id of a new proposal: always the same for an idempotency key of `caller`, else another one each time.
pub(super) fn new_proposal_id(headers: &HeaderMap, caller: &Caller) -> Result<ProposalId, Error> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (keys.next(), keys.next()) {
        (None, _) => Ok(ProposalOrder::new_id()),
        (Some(key), None) if (1..=MAX_KEY).contains(&key.len()) => {
            let name = caller.name();
            // The length comes first, so that no name and key together read as others.
            let hash = Sha256::new().chain_update(format!("proposal:{}:{name}", name.len()).as_bytes());
            let hash = hash.chain_update(key.as_bytes()).finalize();
            let mut bits = [0; 8];
            bits.iter_mut().zip(hash.iter()).for_each(|(bit, byte)| *bit = *byte);
            Ok(ProposalId::from_random(u64::from_be_bytes(bits)))
        }
        _ => {
            let problem = format!("send one `Idempotency-Key` of 1 to {MAX_KEY} bytes, or none");
            Err(Error::Invalid(problem))
        }
    }
}
