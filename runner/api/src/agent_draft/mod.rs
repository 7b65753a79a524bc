//! Drafts an entry of an agent: its text in the configuration file, checked, and what it would change there. A person
//! copies it: nothing is written here.

mod behaviour;
mod entry;

use std::{io, time::Duration};

use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::id::AgentId;
use platform_runtime::settings::Settings;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use similar::TextDiff;
use utoipa::ToSchema;

pub(crate) use self::behaviour::{draft_behaviour, draft_behaviour_operation};
use self::entry::{entry_text, with_entry};
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
/// Time after which a difference becomes coarser: texts without a common line would take seconds of a worker's thread.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);
/// Lines around a change in a difference.
const CONTEXT_LINES: usize = 3;

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
        let problems = self.problems(agent, &before, &after);
        let name = self.path.display().to_string();
        let diff = problems.is_empty().then(|| unified_diff(&before, &after, &name));
        Ok(DraftView { toml, diff, file: Some(name), replaces, problems })
    }

    /// Returns the mistakes of the file with the text `after`. Also checks that no other agent has changed.
    fn problems(&self, agent: &AgentId, before: &str, after: &str) -> Vec<String> {
        let settings = match self.read(after) {
            Err(errors) => return errors.to_string().lines().map(str::to_owned).collect(),
            Ok(settings) => settings,
        };
        let others = |settings: &Settings| -> Vec<_> {
            settings.agents.keys().filter(|id| *id != agent).cloned().collect()
        };
        match self.read(before) {
            Ok(earlier) if others(&earlier) != others(&settings) => {
                vec!["the draft would change other agents: edit the file by hand".to_owned()]
            }
            _ => Vec::new(),
        }
    }
}

/// Returns the difference of two texts of the file `name`, in unified form.
fn unified_diff(before: &str, after: &str, name: &str) -> String {
    TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(before, after)
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(name, name)
        .to_string()
}
