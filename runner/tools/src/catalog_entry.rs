//! catalog_entry defines a tool as the catalog holds it and as it is shown.

use platform_core::{
    id::{ToolName, ToolServerName},
    limit::Millis,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    arguments::ArgumentSchema,
    tool::{Effect, Tool, ToolSpec},
};

/// Tool, as it is shown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CatalogEntry {
    /// The tool's name.
    pub name: ToolName,
    /// Description for a model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub schema: Value,
    /// Effect of the tool.
    pub effect: Effect,
    /// Longest time of a call.
    #[serde(rename = "timeout_ms")]
    pub timeout: Millis,
    /// Third-party server of the tool; none if the tool is built in.
    pub server: Option<ToolServerName>,
    /// Reason why the tool cannot be used with these settings.
    pub unavailable: Option<String>,
}

/// Tool with its compiled schema.
pub(crate) struct CatalogTool {
    pub(crate) tool: Box<dyn Tool>,
    pub(crate) schema: ArgumentSchema,
}

impl CatalogEntry {
    pub(crate) fn of(spec: &ToolSpec) -> Self {
        Self {
            name: spec.name.clone(),
            description: spec.description.clone(),
            schema: spec.schema.clone(),
            effect: spec.effect,
            timeout: Millis(u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX)),
            server: spec.server.clone(),
            unavailable: spec.unavailable.clone(),
        }
    }
}
