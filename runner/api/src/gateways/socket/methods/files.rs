//! Shows and writes behaviour files of agents, as people have written them here.

use runner_model::behaviour::{self, BehaviourFile};
use runner_store::{BehaviourFileStored, GatewayAgentKey};
use serde_json::{Value, json};

use super::{MethodCall, service::SHOWN_FOLDER};
use crate::gateways::socket::refusal::SocketRefusal;

/// Files that OpenClaw makes by itself, and does not take. Clients read and write them with all others.
const MADE_FILES: [&str; 4] = ["IDENTITY.md", "TOOLS.md", "HEARTBEAT.md", "BOOTSTRAP.md"];

/// Returns an answer about a file of an agent.
fn answer_of_file(key: &GatewayAgentKey, file: Value) -> Value {
    json!({ "agentId": key.agent.as_str(), "workspace": SHOWN_FOLDER, "file": file })
}

fn answer_of_written(key: &GatewayAgentKey, file: Value) -> Value {
    let mut answer = answer_of_file(key, file);
    answer["ok"] = true.into();
    answer
}

fn missing(name: &str) -> Value {
    json!({ "name": name, "path": name, "missing": true })
}

impl MethodCall {
    pub(super) async fn list_files(&self) -> Result<Value, SocketRefusal> {
        let key = self.agent_of_files().await?;
        let stored = self.tenant.store().behaviour_files(&key).await?;
        let written = stored.into_iter().filter(|stored| !stored.content.is_empty());
        let files: Vec<_> = written
            .map(|stored| {
                let name = stored.file.name();
                let at = stored.changed.0;
                json!({ "name": name, "path": name, "missing": false, "size": stored.content.len(), "updatedAtMs": at })
            })
            .collect();
        Ok(json!({ "agentId": key.agent.as_str(), "workspace": SHOWN_FOLDER, "files": files }))
    }

    pub(super) async fn get_file(&self) -> Result<Value, SocketRefusal> {
        let key = self.agent_of_files().await?;
        let name = self.params.text("name")?;
        if MADE_FILES.contains(&name.as_str()) {
            return Ok(answer_of_file(&key, missing(&name)));
        }
        let file = self.file()?;
        let stored = self.tenant.store().behaviour_files(&key).await?;
        let found = stored.into_iter().find(|stored| stored.file == file && !stored.content.is_empty());
        let name = file.name();
        let shown = match found {
            None => missing(name),
            Some(found) => json!({
                "name": name, "path": name, "missing": false, "size": found.content.len(),
                "updatedAtMs": found.changed.0, "content": found.content,
            }),
        };
        Ok(answer_of_file(&key, shown))
    }

    pub(super) async fn set_file(&self) -> Result<Value, SocketRefusal> {
        let settings = self.tenant.settings();
        let found = self.tenant.found(&settings)?;
        let key = found.key_to_change(&self.tenant.caller, &self.params.text("agentId")?)?;
        let store = self.tenant.store();
        found.stored(store, &self.tenant.caller, &key).await?;
        let content: String = self.params.required("content")?;
        let name = self.params.text("name")?;
        if content.is_empty() && MADE_FILES.contains(&name.as_str()) {
            return Ok(answer_of_written(&key, missing(&name)));
        }
        let file = self.file()?;
        behaviour::check_text(&content).map_err(|fault| self.refuse(&format!("at /content: {fault}")))?;
        if store.put_behaviour_file(&key, file, &content, None).await? == BehaviourFileStored::Unknown {
            return Err(crate::error::Error::Route.into());
        }
        tracing::info!(agent = %key, file = file.name(), by = self.tenant.caller.name(), "behaviour file written");
        let shown =
            json!({ "name": file.name(), "path": file.name(), "missing": false, "size": content.len() });
        Ok(answer_of_written(&key, shown))
    }

    async fn agent_of_files(&self) -> Result<GatewayAgentKey, SocketRefusal> {
        let named = self.params.text("agentId")?;
        let agent = self.tenant.agent(Some(&named)).await?;
        Ok(self.tenant.key(&agent.id))
    }

    fn file(&self) -> Result<BehaviourFile, SocketRefusal> {
        let name = self.params.text("name")?;
        BehaviourFile::of_gateway_agent(&name).ok_or_else(|| {
            SocketRefusal::invalid(
                "FILE_UNKNOWN",
                "unsupported file: there are AGENTS.md, SOUL.md, USER.md and MEMORY.md",
            )
        })
    }
}
