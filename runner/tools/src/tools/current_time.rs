//! current_time returns the time of this host, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use serde_json::json;

use crate::tool::{Invocation, Tool, ToolResult, ToolSpec, tool_name};

/// `core__get_current_time`
pub(super) struct CurrentTime(ToolSpec);

impl CurrentTime {
    pub(super) fn new() -> Self {
        let schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
        Self(ToolSpec::reading(
            tool_name("core__get_current_time"),
            "Returns the current time in UTC.",
            schema,
        ))
    }
}

impl Tool for CurrentTime {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn run<'t>(&'t self, _call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(async {
            let now = SystemTime::now();
            let millis = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            let millis = u64::try_from(millis).unwrap_or(u64::MAX);
            Ok(json!({ "utc": humantime::format_rfc3339_millis(now).to_string(), "unix_ms": millis }))
        })
    }
}
