//! Serves behaviour files of agents in gateways.

use axum::{
    Extension,
    extract::{Path, Request, State},
    http::StatusCode,
    response::Response,
};
use runner_model::behaviour::{self, BehaviourFile, MAX_TEXT};
use runner_store::{BehaviourFileStored, GatewayAgentKey, StoredBehaviourFile};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::{agent_view::GatewayAgentView, agents::FoundGateway};
use crate::{
    body::{read_json, refuse_query},
    caller::Caller,
    context::ApiContext,
    error::Error,
    json_response,
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
    rfc3339::rfc3339,
};

/// Largest body: each character of a file may be escaped.
const MAX_BODY: usize = 6 * MAX_TEXT + 1024;

/// Behaviour files of an agent.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayAgentFileList)]
struct FileListView {
    files: Vec<FileView>,
}

/// Behaviour file.
#[derive(Serialize, ToSchema)]
#[schema(as = GatewayAgentFile)]
#[serde(rename_all = "camelCase")]
struct FileView {
    #[schema(value_type = schemas::BehaviourFileName)]
    name: &'static str,
    content: String,
    /// Revision that the agent got when the file was stored; 0 if nothing is stored.
    revision: u64,
    /// Time of its last change; null if nothing is stored.
    #[schema(required = true, format = DateTime)]
    changed_at: Option<String>,
}

impl FileView {
    fn empty(file: BehaviourFile) -> Self {
        Self { name: file.name(), content: String::new(), revision: 0, changed_at: None }
    }

    fn of(stored: StoredBehaviourFile) -> Self {
        Self {
            name: stored.file.name(),
            content: stored.content,
            revision: stored.revision,
            changed_at: Some(rfc3339(stored.changed)),
        }
    }
}

/// Behaviour file, as a client sends it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = GatewayAgentFileContent)]
#[serde(deny_unknown_fields)]
struct FileBody {
    /// Text of at most 256 KiB.
    content: String,
    /// Revision of the file that the text was made from, 0 if the file was empty. If absent, any is replaced.
    #[schema(nullable = false)]
    revision: Option<u64>,
}

/// Lists the behaviour files that people wrote.
pub(crate) async fn list(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let key = found.key(&agent)?;
    let store = &context.opened().await?.store;
    found.check_exists(store, &caller, &key).await?;
    let written = store.behaviour_files(&key).await?.into_iter().filter(|stored| !stored.content.is_empty());
    Ok(json_response(&FileListView { files: written.map(FileView::of).collect() }))
}

pub(crate) fn list_operation() -> Operation {
    let files = AnswerSpec::json::<FileListView>(StatusCode::OK, "The files, by name.");
    Operation::new("listGatewayAgentFiles", "Lists the behaviour files of an agent.", files)
        .described("These are the files that people wrote here. The agent may have changed its own copies.")
        .without_query()
}

/// Writes a behaviour file.
pub(crate) async fn put(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent, name)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let file = file_named(&name)?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let key = found.key_to_change(&caller, &agent)?;
    let body: FileBody = read_json(request, MAX_BODY).await?;
    behaviour::check_text(&body.content).map_err(|fault| Error::Invalid(format!("`content`: {fault}")))?;
    write(&context, &caller, FileChange { found, key, file, body }).await
}

pub(crate) fn put_operation() -> Operation {
    let agent = AnswerSpec::json::<GatewayAgentView>(StatusCode::OK, "The agent, with a new revision.");
    Operation::new("putGatewayAgentFile", "Writes a behaviour file of an agent.", agent)
        .described(
            "`AGENTS.md`, `SOUL.md`, `USER.md` or `MEMORY.md`. Its gateway gets the file within seconds.",
        )
        .without_query()
        .body::<FileBody>(&json!({ "content": "Answer in one sentence.\n", "revision": 0 }))
        .refuses([Problem::GATEWAY_AGENT_CHANGED, Problem::GATEWAY_AGENT_FIXED])
}

/// Empties a behaviour file.
pub(crate) async fn remove(
    State(context): State<ApiContext>,
    Extension(caller): Extension<Caller>,
    Path((gateway, agent, name)): Path<(String, String, String)>,
    request: Request,
) -> Result<Response, Error> {
    refuse_query(request.uri())?;
    let file = file_named(&name)?;
    let settings = context.settings().get();
    let found = FoundGateway::find(&settings, &caller, &gateway)?;
    let key = found.key_to_change(&caller, &agent)?;
    let body = FileBody { content: String::new(), revision: None };
    write(&context, &caller, FileChange { found, key, file, body }).await
}

pub(crate) fn remove_operation() -> Operation {
    let agent = AnswerSpec::json::<GatewayAgentView>(StatusCode::OK, "The agent, with a new revision.");
    Operation::new("removeGatewayAgentFile", "Empties a behaviour file of an agent.", agent)
        .without_query()
        .refuses([Problem::GATEWAY_AGENT_FIXED])
}

/// Change of a behaviour file.
struct FileChange<'s> {
    found: FoundGateway<'s>,
    key: GatewayAgentKey,
    file: BehaviourFile,
    body: FileBody,
}

async fn write(context: &ApiContext, caller: &Caller, change: FileChange<'_>) -> Result<Response, Error> {
    let FileChange { found, key, file, body: FileBody { content, revision } } = change;
    let store = &context.opened().await?.store;
    found.stored(store, caller, &key).await?;
    match store.put_behaviour_file(&key, file, &content, revision).await? {
        BehaviourFileStored::Stored => {}
        BehaviourFileStored::Unknown => return Err(Error::Route),
        BehaviourFileStored::Conflict(current) => {
            let current = current.map_or_else(|| FileView::empty(file), FileView::of);
            let current = json!(current);
            let yours = json!({ "content": content });
            return Err(Error::GatewayAgentChanged { current: Box::new(current), yours: Box::new(yours) });
        }
    }
    tracing::info!(agent = %key, file = file.name(), by = caller.name(), "behaviour file written");
    let stored = store.gateway_agent(&key).await?.ok_or(Error::Route)?;
    Ok(json_response(&GatewayAgentView::of(stored, found.id, found.gateway)))
}

fn file_named(name: &str) -> Result<BehaviourFile, Error> {
    BehaviourFile::of_gateway_agent(name).ok_or(Error::Route)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_openclaw_takes_exist() {
        assert!(file_named("AGENTS.md").is_ok(), "control");
        for name in ["agents.md", "TOOLS.md", "../AGENTS.md", "BOOT.md"] {
            assert!(file_named(name).is_err(), "{name}");
        }
    }
}
