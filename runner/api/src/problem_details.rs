//! Defines the form in which the API answers with a problem (RFC 9457).

use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;

/// Answer to a request that fails, as problem details (RFC 9457).
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProblemDetails {
    /// `urn:sluicegate:error:` and the code.
    pub(crate) r#type: String,
    /// Meaning of the status.
    pub(crate) title: &'static str,
    /// Status of the answer.
    pub(crate) status: u16,
    /// Code of the problem, on which programs may act.
    pub(crate) code: &'static str,
    /// Explanation of this case, for people.
    pub(crate) detail: String,
    /// Action that would change the outcome, for people.
    pub(crate) help: &'static str,
    /// Agents that exist, if the code is `unknown_agent`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) agents: Vec<String>,
    /// Models that the agent may ask, if the code is `model_not_granted`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) models: Vec<String>,
    /// Model that is asked if the order names none, if the code is `model_not_granted` and there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) default_model_id: Option<String>,
    /// Agent of the gateway, or its behaviour file, as it is now, if the code is `gateway_agent_changed` or
    /// `gateway_agent_exists`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pub(crate) current: Option<serde_json::Value>,
    /// Settings or text that the request had, if the code is `gateway_agent_changed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pub(crate) yours: Option<serde_json::Value>,
}

impl ProblemDetails {
    /// Media type of problem details.
    pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

    /// Returns the answer for a problem of this kind.
    pub(crate) fn of(problem: Problem, detail: String) -> Self {
        Self {
            r#type: urn(problem.word()),
            title: problem.status().canonical_reason().unwrap_or_default(),
            status: problem.status().as_u16(),
            code: problem.word(),
            detail,
            help: problem.help,
            agents: Vec::new(),
            models: Vec::new(),
            default_model_id: None,
            current: None,
            yours: None,
        }
    }

    /// Returns the same answer with another code.
    pub(crate) fn with_code(self, code: &'static str) -> Self {
        Self { r#type: urn(code), code, ..self }
    }
}

/// Returns the type of the problems with this code.
fn urn(code: &str) -> String {
    format!("urn:sluicegate:error:{code}")
}
