//! metrics_query answers configured queries of metrics, for the series of the caller's account alone.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use platform_runtime::settings::{ParameterKind, Settings, ToolMetrics};
use serde::Deserialize;
use serde_json::{Value, json};

use super::prometheus::Prometheus;
use crate::{
    parts::Parts,
    tool::{Invocation, Tool, ToolCode, ToolError, ToolResult, ToolSpec, tool_name},
};

/// Time beyond that of a query until the tool is cut.
const GRACE: Duration = Duration::from_secs(5);

/// `core__metrics_query`
pub(super) struct MetricsQuery {
    spec: ToolSpec,
    settings: Arc<Settings>,
    prometheus: Option<Prometheus>,
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    #[serde(default)]
    parameters: BTreeMap<String, ParameterValue>,
    time: Option<u64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ParameterValue {
    Text(String),
    Integer(u64),
}

impl MetricsQuery {
    pub(super) fn new(parts: &Parts) -> Self {
        let settings = Arc::clone(&parts.gateway.settings);
        let metrics = &settings.tools.metrics;
        let schema = schema(metrics);
        let mut spec = ToolSpec::reading(tool_name("core__metrics_query"), &description(metrics), schema);
        spec.timeout = Duration::from_millis(metrics.query_timeout.0) + GRACE;
        spec.unavailable = match (&metrics.url, metrics.templates.is_empty()) {
            (None, _) => Some("tools.metrics.url is not set".to_owned()),
            (_, true) => Some("tools.metrics.templates has no query".to_owned()),
            _ => None,
        };
        let timeout = Duration::from_millis(metrics.query_timeout.0);
        let prometheus = metrics.url.clone().map(|url| Prometheus::new(url, timeout));
        Self { spec, settings, prometheus }
    }

    async fn query(&self, call: &Invocation) -> ToolResult {
        let Arguments { query: name, parameters, time } = call.arguments()?;
        let metrics = &self.settings.tools.metrics;
        let unavailable = || ToolError::new(ToolCode::ToolUnavailable, "there is no such query");
        let template = metrics.templates.get(&name).ok_or_else(unavailable)?;
        let prometheus = self.prometheus.as_ref().ok_or_else(unavailable)?;
        let as_text = |value: ParameterValue| match value {
            ParameterValue::Text(text) => text,
            ParameterValue::Integer(number) => number.to_string(),
        };
        let values = parameters.into_iter().map(|(name, value)| (name, as_text(value))).collect();
        let account = call.account.as_str();
        let query = template.query.render(&metrics.account_label, account, &values);
        let query = query.map_err(|error| ToolError::new(ToolCode::InvalidArguments, error.to_string()))?;
        let data = prometheus.query(&query, time).await?;
        if has_other_account(&data, &metrics.account_label, account) {
            tracing::error!(query = name, "metrics of another account not passed on: the template is wrong");
            return Err(ToolError::new(ToolCode::ToolFailed, "the answer has series of another account"));
        }
        Ok(json!({ "query": name, "result_type": data["resultType"], "result": data["result"] }))
    }
}

impl Tool for MetricsQuery {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'t>(&'t self, call: &'t Invocation) -> BoxFuture<'t, ToolResult> {
        Box::pin(self.query(call))
    }
}

/// Returns whether a series carries the account's label with another account.
fn has_other_account(data: &Value, label: &str, account: &str) -> bool {
    let series = data["result"].as_array().map(Vec::as_slice).unwrap_or_default();
    series.iter().any(|series| series["metric"][label].as_str().is_some_and(|found| found != account))
}

fn description(metrics: &ToolMetrics) -> String {
    let mut text = "Queries metrics of your account. Queries:".to_owned();
    for (name, template) in &metrics.templates {
        text.push_str(&format!("\n- `{name}`"));
        for (parameter, kind) in &template.query.parameters {
            text.push_str(&format!(" {parameter}={}", kind.word()));
        }
        if !template.description.is_empty() {
            text.push_str(&format!(": {}", template.description));
        }
    }
    text
}

/// Returns the schema: a choice of the templates, each with its parameters.
fn schema(metrics: &ToolMetrics) -> Value {
    let choices = metrics.templates.iter().map(|(name, template)| {
        let properties = template.query.parameters.iter().map(|(name, kind)| {
            let value = match kind {
                ParameterKind::Text => json!({ "type": "string", "maxLength": 256 }),
                ParameterKind::Integer => json!({ "type": "integer", "minimum": 0, "maximum": 999_999_999 }),
                ParameterKind::Duration => {
                    json!({ "type": "string", "pattern": "^[0-9]{1,9}(ms|s|m|h|d|w|y)$" })
                }
            };
            (name.clone(), value)
        });
        let required: Vec<&String> = template.query.parameters.keys().collect();
        json!({
            "if": { "properties": { "query": { "const": name } } },
            "then": {
                "properties": { "parameters": {
                    "type": "object", "additionalProperties": false, "required": required,
                    "properties": Value::Object(properties.collect()),
                } },
                "required": if required.is_empty() { json!([]) } else { json!(["parameters"]) },
            },
        })
    });
    let choices: Vec<Value> = choices.collect();
    let names: Vec<&String> = metrics.templates.keys().collect();
    let mut schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["query"],
        "properties": {
            "query": { "type": "string", "enum": names, "description": "Name of the query." },
            "parameters": { "type": "object", "description": "Values of the query's parameters." },
            "time": { "type": "integer", "minimum": 0, "maximum": 99_999_999_999_u64, "description": "Time of the query in seconds since 1970; now if absent." },
        },
    });
    if names.is_empty() {
        schema["properties"]["query"] = json!({ "type": "string" });
    } else {
        schema["allOf"] = choices.into();
    }
    schema
}
