//! Reads orders of proposals.

use axum::http::HeaderMap;
use platform_core::id::{AgentId, ProposalId};
use runner_proposals::{InvalidContent, ProposalContent, ProposalOrder};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    caller::Caller,
    error::Error,
    operation::schemas,
    runs::{hash_of_key, idempotency_key},
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
    let Some(key) = idempotency_key(headers)? else { return Ok(ProposalOrder::new_id()) };
    let hash = hash_of_key(caller, &[b"proposal", key]);
    let bits = hash.first_chunk().ok_or(Error::Internal)?;
    Ok(ProposalId::from_random(u64::from_be_bytes(*bits)))
}
