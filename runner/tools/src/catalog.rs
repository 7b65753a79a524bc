//! catalog is the table of all host tools.

use std::{collections::BTreeMap, fmt, sync::Arc};

use platform_core::{id::ToolName, limit::Millis};
use serde::Serialize;
use serde_json::Value;

use crate::{
    arguments::ArgumentSchema,
    parts::Parts,
    tool::{Effect, Tool, ToolError, ToolSpec},
    tools,
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
    /// Reason why the tool cannot be used with these settings.
    pub unavailable: Option<String>,
}

/// Tool with its compiled schema.
pub(crate) struct CatalogTool {
    pub(crate) tool: Box<dyn Tool>,
    pub(crate) schema: ArgumentSchema,
}

/// All tools, by name. Clones share them.
#[derive(Clone)]
pub(crate) struct Catalog(Arc<BTreeMap<ToolName, CatalogTool>>);

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Catalog {
    /// Creates the table of the built-in tools.
    pub(crate) fn built_in(parts: &Parts) -> Self {
        Self::of(tools::all(parts))
    }

    /// Creates a table of `tools`. One whose schema cannot be compiled is left out, and logged.
    pub(crate) fn of(tools: Vec<Box<dyn Tool>>) -> Self {
        let mut listed = BTreeMap::new();
        for tool in tools {
            let spec = tool.spec();
            let name = spec.name.clone();
            match ArgumentSchema::compile(&spec.schema) {
                Ok(schema) => drop(listed.insert(name, CatalogTool { tool, schema })),
                Err(error) => {
                    tracing::error!(tool = %name, error, "host tool left out: its schema is invalid")
                }
            }
        }
        Self(Arc::new(listed))
    }

    /// Returns a tool that can be used.
    ///
    /// # Errors
    /// A refusal.
    pub(crate) fn get(&self, name: &ToolName) -> Result<&CatalogTool, ToolError> {
        let Some(listed) = self.0.get(name) else {
            return Err(ToolError::denied("tool_unknown", format!("there is no tool {name}")));
        };
        match &listed.tool.spec().unavailable {
            Some(reason) => Err(ToolError::denied("tool_unavailable", format!("{name}: {reason}"))),
            None => Ok(listed),
        }
    }

    /// Returns the descriptions of all tools.
    pub(crate) fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.0.values().map(|listed| listed.tool.spec())
    }

    /// Returns all tools, in the order of their names.
    pub(crate) fn entries(&self) -> Vec<CatalogEntry> {
        let entry = |listed: &CatalogTool| {
            let spec = listed.tool.spec();
            CatalogEntry {
                name: spec.name.clone(),
                description: spec.description.clone(),
                schema: spec.schema.clone(),
                effect: spec.effect,
                timeout: Millis(u64::try_from(spec.timeout.as_millis()).unwrap_or(u64::MAX)),
                unavailable: spec.unavailable.clone(),
            }
        };
        self.0.values().map(entry).collect()
    }
}
