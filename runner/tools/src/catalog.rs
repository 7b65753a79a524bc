//! catalog is the table of all host tools: the built-in ones, and those of third-party servers.

use std::{collections::BTreeMap, fmt, sync::Arc};

use platform_core::id::ToolName;
use platform_runtime::report;

use crate::{
    arguments::ArgumentSchema,
    catalog_entry::{CatalogEntry, CatalogTool},
    parts::Parts,
    servers::ServerCatalog,
    tool::{ToolCode, ToolError},
    tools,
};

/// All tools, by name. Clones share them.
#[derive(Clone)]
pub(crate) struct Catalog {
    built_in: Arc<BTreeMap<ToolName, Arc<CatalogTool>>>,
    servers: Arc<ServerCatalog>,
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.built_in.keys()).finish_non_exhaustive()
    }
}

impl Catalog {
    /// Creates the table of the built-in tools and of `servers`. A tool is left out, and logged, if its schema cannot
    /// be compiled.
    pub(crate) fn new(parts: &Parts, servers: Arc<ServerCatalog>) -> Self {
        let mut built_in = BTreeMap::new();
        for tool in tools::all(parts) {
            let spec = tool.spec();
            let name = spec.name.clone();
            match ArgumentSchema::compile(&spec.schema) {
                Ok(schema) => drop(built_in.insert(name, Arc::new(CatalogTool { tool, schema }))),
                Err(error) => {
                    tracing::error!(tool = %name, error = report::chain(&error), "host tool left out: its schema is invalid")
                }
            }
        }
        Self { built_in: Arc::new(built_in), servers }
    }

    /// Returns a tool that can be used.
    ///
    /// # Errors
    /// A refusal.
    pub(crate) async fn get(&self, name: &ToolName) -> Result<Arc<CatalogTool>, ToolError> {
        let Some(listed) = self.built_in.get(name) else { return self.servers.get(name).await };
        match &listed.tool.spec().unavailable {
            Some(reason) => Err(ToolError::new(ToolCode::ToolUnavailable, format!("{name}: {reason}"))),
            None => Ok(Arc::clone(listed)),
        }
    }

    /// Returns all tools, in the order of their names. Those of servers are described as they were accepted.
    pub(crate) async fn entries(&self) -> Vec<CatalogEntry> {
        let built_in = self.built_in.values().map(|listed| CatalogEntry::of(listed.tool.spec()));
        let mut entries: Vec<_> = built_in.chain(self.servers.entries().await).collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries
    }
}
