//! Drafts a behaviour file of an agent, such as a skill in its `TOOLS.md`, as a difference to the file that is there. A
//! person copies it: nothing is written here.

use std::path::Path;

use axum::{
    extract::{Request, State},
    http::StatusCode,
    response::Response,
};
use platform_core::{id::AgentId, invalid::InvalidValue};
use runner_engine::agent_data::{MAX_BEHAVIOUR_FILE, read_behaviour_file};
use runner_model::behaviour::BehaviourFile;
use runner_proposals::unified_diff;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    body::{ObjectId, read_json},
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
};

/// Largest body: a text of the largest size, in which characters may be escaped.
const MAX_BODY: usize = 512 << 10;

/// Text to draft.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = BehaviourDraftOrder)]
#[serde(deny_unknown_fields)]
struct BehaviourBody {
    #[schema(value_type = schemas::BehaviourFileName)]
    file: BehaviourFile,
    /// Whole text of the file.
    text: String,
}

/// Draft of a behaviour file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BehaviourDraft)]
struct BehaviourView {
    /// Path of the file; null if the agent's entry has no `behaviour_dir`.
    #[schema(required = true)]
    path: Option<String>,
    /// Difference to the file, in unified form; null if there is a problem.
    #[schema(required = true)]
    diff: Option<String>,
    /// Reason why no agent would get the text.
    #[schema(required = true)]
    problem: Option<String>,
}

/// Drafts a behaviour file of an agent.
pub(crate) async fn draft_behaviour(
    State(context): State<ApiContext>,
    ObjectId(agent): ObjectId,
    request: Request,
) -> Result<Response, Error> {
    let agent = AgentId::parse(&agent).map_err(|_invalid| Error::Route)?;
    let BehaviourBody { file, text } = read_json(request, MAX_BODY).await?;
    let configuration = context.configuration().ok_or(Error::Internal)?;
    let text_of_file = configuration.text().map_err(|error| configuration.unreadable(&error))?;
    let settings = configuration.read(&text_of_file).map_err(|errors| Error::Invalid(errors.to_string()))?;
    let entry = settings.agents.get(&agent).ok_or(Error::Route)?;
    Ok(json_response(&BehaviourView::of(entry.behaviour_dir.as_deref(), file, &text)))
}

pub(crate) fn draft_behaviour_operation() -> Operation {
    let example = json!({ "file": "TOOLS.md", "text": "# Release notes\n\nRead CHANGELOG.md first.\n" });
    let draft = AnswerSpec::json::<BehaviourView>(StatusCode::OK, "The draft.");
    Operation::new("draftBehaviour", "Drafts a behaviour file of an agent, and writes nothing.", draft)
        .described(
            "The file is in `behaviour_dir` of the agent's entry. Each later request of a run gets its text.",
        )
        .body::<BehaviourBody>(&example)
}

impl BehaviourView {
    /// Returns the draft of a file in `dir`.
    fn of(dir: Option<&Path>, file: BehaviourFile, text: &str) -> Self {
        let Some(dir) = dir else {
            let problem =
                "the entry has no `behaviour_dir`: add one, a directory for the agent's behaviour files";
            return Self { path: None, diff: None, problem: Some(problem.to_owned()) };
        };
        let path = dir.join(file.name()).display().to_string();
        match change(dir, file, text) {
            Ok(before) => {
                Self { diff: Some(unified_diff(&before, text, &path)), path: Some(path), problem: None }
            }
            Err(fault) => Self { path: Some(path), diff: None, problem: Some(fault.to_string()) },
        }
    }
}

/// Returns the present text of the file, empty if the file does not exist; or why it cannot have the text `after`.
fn change(dir: &Path, file: BehaviourFile, after: &str) -> Result<String, InvalidValue> {
    if after.len() > MAX_BEHAVIOUR_FILE.as_usize() {
        return Err(format!(
            "the text is larger than {MAX_BEHAVIOUR_FILE}: shorten it, agents put it into each prompt"
        )
        .into());
    }
    if let Some(character) = after.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r')) {
        return Err(
            format!("the text has the control character {}: remove it", character.escape_default()).into()
        );
    }
    read_behaviour_file(dir, file).map(Option::unwrap_or_default).map_err(InvalidValue::of)
}
