//! Drafts an entry of an agent: its text in the configuration file, checked, and what it would change there. A person
//! copies it: nothing is written here.

mod behaviour;

use std::io;

use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::id::AgentId;
use runner_proposals::{entry_text, unified_diff, with_entry};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

pub(crate) use self::behaviour::{draft_behaviour, draft_behaviour_operation};
use crate::{
    body::read_json,
    configuration_file::ConfigurationFile,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
};

/// Largest body.
const MAX_BODY: usize = 64 << 10;

/// Agent to draft.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = AgentDraftOrder)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DraftBody {
    #[schema(value_type = schemas::AgentId)]
    agent_id: String,
    #[schema(value_type = schemas::AgentSettings)]
    settings: Map<String, Value>,
}

/// Draft of an agent's entry.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgentDraft)]
#[serde(rename_all = "camelCase")]
struct DraftView {
    /// Entry in TOML.
    toml: String,
    /// Difference to the configuration file, in unified form; null if the file would be wrong with the entry.
    #[schema(required = true)]
    diff: Option<String>,
    /// Path of the configuration file.
    #[schema(required = true)]
    file: Option<String>,
    /// True if the file has an entry of the agent, which the draft replaces.
    replaces: bool,
    /// Mistakes of the file with the entry; none if it is right.
    problems: Vec<String>,
}

/// Drafts an entry of an agent.
pub(crate) async fn draft(State(context): State<ApiContext>, request: Request) -> Result<Response, Error> {
    let DraftBody { agent_id, settings } = read_json(request, MAX_BODY).await?;
    let agent = AgentId::parse(&agent_id).map_err(|error| Error::Invalid(format!("`agentId`: {error}")))?;
    let toml = entry_text(&agent, &settings).map_err(|fault| Error::Invalid(fault.to_string()))?;
    let configuration = context.configuration().ok_or(Error::Internal)?;
    let view = configuration.draft(&agent, toml).map_err(|error| configuration.unreadable(&error))?;
    Ok(json_response(&view))
}

pub(crate) fn draft_operation() -> Operation {
    let example = json!({
        "agentId": "team:reviewer",
        "settings": { "image": "team/reviewer:1", "argv": ["node", "/agent/run.mjs"], "run_timeout": "10m" },
    });
    let draft = AnswerSpec::json::<DraftView>(StatusCode::OK, "The draft.");
    Operation::new("draftAgent", "Drafts an entry of an agent, and writes nothing.", draft)
        .described("`problems` has the mistakes of the configuration with the entry, as `sluice config check` finds them.")
        .body::<DraftBody>(&example)
}

impl ConfigurationFile {
    /// Returns the draft of `agent` with this entry.
    fn draft(&self, agent: &AgentId, toml: String) -> io::Result<DraftView> {
        let before = self.text()?;
        let (after, replaces) = with_entry(&before, agent, &toml);
        let problems = self.reader.problems(&self.path, agent, &before, &after);
        let name = self.path.display().to_string();
        let diff = problems.is_empty().then(|| unified_diff(&before, &after, &name));
        Ok(DraftView { toml, diff, file: Some(name), replaces, problems })
    }
}
