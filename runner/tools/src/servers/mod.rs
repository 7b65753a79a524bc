//! servers has the tools of third-party servers. The operator names those that exist, and accepts their descriptions: no
//! word of a server reaches a model before.

mod review;
mod server_tool;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use platform_core::{
    id::{ToolName, ToolServerName},
    invalid::InvalidValue,
};
use platform_runtime::{report, settings::ToolServer, sync::Mutex};
use runner_mcp::{ToolDefinition, ToolServers};
use runner_store::{AcceptedTool, Store};
use serde_json::json;

pub use self::review::{AcceptError, ReviewedServer, ReviewedTool, ServerToolState};
use self::server_tool::ServerTool;
use crate::{
    arguments::ArgumentSchema,
    caller::store_unavailable,
    catalog_entry::{CatalogEntry, CatalogTool},
    tool::{Effect, ToolCode, ToolError, ToolSpec},
};

/// Time of a call beside that of the tool: the start of its server, and the list of its tools.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Tool of a server, by the settings.
#[derive(Debug, Clone)]
struct ConfiguredTool {
    name: ToolName,
    server: ToolServerName,
    /// Name of the tool at its server.
    tool: String,
}

/// Tools of all third-party servers.
pub(crate) struct ServerCatalog {
    store: Store,
    servers: ToolServers,
    tools: BTreeMap<ToolName, ConfiguredTool>,
    /// Compiled tools, each with the digest that was accepted.
    compiled: Mutex<BTreeMap<ToolName, (String, Arc<CatalogTool>)>>,
}

impl ServerCatalog {
    /// Creates the table of the tools in the settings of `servers`. Does no I/O.
    pub(crate) fn new(store: Store, servers: ToolServers) -> Self {
        let of_server = |(server, settings): (&ToolServerName, &ToolServer)| {
            let tool = |(tool, name): (&String, &ToolName)| ConfiguredTool {
                name: name.clone(),
                server: server.clone(),
                tool: tool.clone(),
            };
            settings.tools.iter().map(tool).collect::<Vec<_>>()
        };
        let tools = servers.settings().iter().flat_map(of_server);
        let tools = tools.map(|tool| (tool.name.clone(), tool)).collect();
        Self { store, servers, tools, compiled: Mutex::default() }
    }

    /// Returns a tool that was accepted.
    ///
    /// # Errors
    /// A refusal.
    pub(crate) async fn get(&self, name: &ToolName) -> Result<Arc<CatalogTool>, ToolError> {
        let unknown = || ToolError::new(ToolCode::ToolUnknown, format!("there is no tool {name}"));
        let tool = self.tools.get(name).ok_or_else(unknown)?;
        let accepted = self.store.accepted_tool(&tool.server, &tool.tool).await;
        let accepted = accepted.map_err(|error| store_unavailable(&error))?;
        let unavailable =
            |reason: InvalidValue| ToolError::new(ToolCode::ToolUnavailable, format!("{name}: {reason}"));
        let accepted = accepted.ok_or_else(|| unavailable(not_accepted(tool).into()))?;
        self.compile(tool, &accepted).map_err(unavailable)
    }

    /// Returns all tools of the settings.
    pub(crate) async fn entries(&self) -> Vec<CatalogEntry> {
        if self.tools.is_empty() {
            return vec![];
        }
        let accepted = match self.store.accepted_tools().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(error = report::chain(&error), "tools of servers not listed: the store fails");
                return vec![];
            }
        };
        let entry = |tool: &ConfiguredTool| {
            let accepted = accepted.iter().find(|it| is_of(it, tool));
            let compiled = accepted.map(|accepted| self.compile(tool, accepted));
            match compiled {
                Some(Ok(compiled)) => CatalogEntry::of(compiled.tool.spec()),
                Some(Err(reason)) => CatalogEntry::of(&self.missing(tool, reason.to_string())),
                None => CatalogEntry::of(&self.missing(tool, not_accepted(tool))),
            }
        };
        self.tools.values().map(entry).collect()
    }

    /// Ends the sessions of all servers.
    pub(crate) async fn close(&self) {
        self.servers.close().await;
    }

    fn compile(
        &self,
        tool: &ConfiguredTool,
        accepted: &AcceptedTool,
    ) -> Result<Arc<CatalogTool>, InvalidValue> {
        let digest = &accepted.acceptance.digest;
        if let Some((known, compiled)) = self.compiled.lock().get(&tool.name)
            && known == digest
        {
            return Ok(Arc::clone(compiled));
        }
        let definition = ToolDefinition::read(&accepted.acceptance.definition);
        let definition = definition.map_err(|error| format!("what was accepted cannot be used: {error}"))?;
        if definition.digest != *digest {
            return Err("its acceptance was altered in the store".into());
        }
        let schema = ArgumentSchema::compile_foreign(&definition.schema)?;
        let mut spec = self.missing(tool, String::new());
        spec.unavailable = None;
        spec.description =
            format!("Tool of the third-party server `{}`. {}", tool.server, definition.description);
        spec.schema = definition.schema;
        let tool_of_server =
            ServerTool::new(spec, self.servers.clone(), tool.clone(), definition.digest.clone());
        let compiled = Arc::new(CatalogTool { tool: Box::new(tool_of_server), schema });
        self.compiled.lock().insert(tool.name.clone(), (definition.digest, Arc::clone(&compiled)));
        Ok(compiled)
    }

    /// Returns the description of a tool that cannot be used.
    fn missing(&self, tool: &ConfiguredTool, reason: String) -> ToolSpec {
        let description = format!("Tool of the third-party server `{}`.", tool.server);
        let mut spec = ToolSpec::reading(tool.name.clone(), &description, json!({ "type": "object" }));
        spec.server = Some(tool.server.clone());
        spec.unavailable = Some(reason);
        if let Some(server) = self.servers.settings().get(&tool.server) {
            spec.effect = if server.reads.contains(&tool.tool) { Effect::Reads } else { Effect::Writes };
            spec.timeout = server.timeout.duration() + START_TIMEOUT;
            spec.max_result = server.max_result;
            spec.connection = server.connection.as_ref().map(ToString::to_string);
        }
        spec
    }
}

fn is_of(accepted: &AcceptedTool, tool: &ConfiguredTool) -> bool {
    accepted.acceptance.server == tool.server && accepted.acceptance.tool == tool.tool
}

fn not_accepted(tool: &ConfiguredTool) -> String {
    format!("its description was not accepted: `sluice tools accept {} {}` shows it", tool.server, tool.tool)
}
