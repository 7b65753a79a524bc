//! tools describes tools, and what became of a call, in the words of the Model Context Protocol.

use serde_json::{Value, json};

use super::negotiation::Lifecycle;
use crate::{
    caller::CallingRun, catalog::Catalog, catalog_entry::CatalogEntry, execute::Executed, tool::Effect,
};

/// Returns the tools that the caller may call and that can be used.
pub(super) async fn list(catalog: &Catalog, caller: &CallingRun, lifecycle: Lifecycle) -> Value {
    let is_shown = |entry: &CatalogEntry| caller.granted.contains(&entry.name) && entry.unavailable.is_none();
    let tools: Vec<_> = catalog.entries().await.into_iter().filter(is_shown).map(shown).collect();
    let mut list = json!({ "tools": tools });
    if lifecycle == Lifecycle::New {
        list["ttlMs"] = json!(0);
        list["cacheScope"] = json!("private");
    }
    complete(list, lifecycle)
}

fn shown(entry: CatalogEntry) -> Value {
    let schema = if entry.schema.is_object() { entry.schema } else { json!({}) };
    json!({
        "name": entry.name,
        "description": entry.description,
        "inputSchema": schema,
        "annotations": {
            "readOnlyHint": entry.effect == Effect::Reads,
            "idempotentHint": entry.effect == Effect::Reads,
            // What a third party's tool does is known to its server alone.
            "destructiveHint": entry.server.is_some() && entry.effect == Effect::Writes,
        },
    })
}

/// Returns the result of a call. Its failure is one that a model reads, and no error of the protocol.
pub(super) fn result(executed: &Executed, lifecycle: Lifecycle) -> Value {
    let text = |text: String| json!([{ "type": "text", "text": text }]);
    let result = match &executed.result {
        Ok(value) => {
            let mut result = json!({ "content": text(value.to_string()), "isError": false });
            if value.is_object() {
                result["structuredContent"] = value.clone();
            }
            result
        }
        Err(error) => json!({
            "content": text(format!("{}: {}", error.code, error.message)),
            "structuredContent": { "error": { "code": error.code, "message": error.message } },
            "isError": true,
        }),
    };
    complete(result, lifecycle)
}

/// Adds to a result what newer versions demand: that it is all.
fn complete(mut result: Value, lifecycle: Lifecycle) -> Value {
    if lifecycle == Lifecycle::New {
        result["resultType"] = json!("complete");
    }
    result
}
