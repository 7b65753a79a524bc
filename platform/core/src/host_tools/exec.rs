//! Reads the body of `POST /tool/exec`. Data plane and control plane read it with this same code: a text that two
//! parsers could read differently is not a body.

use serde::{Deserialize, Serialize, Serializer, ser::SerializeStruct as _};

use super::BOUNDS;
use crate::{
    id::{RunId, ToolCallId, ToolName},
    json::{self, Raw},
};

/// Body of a call.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecRequest<'b> {
    /// Run that the caller believes to be.
    pub run_id: RunId,
    /// Id that the caller chose. A call with the id of an earlier one is the same call, and runs once.
    pub call_id: ToolCallId,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments, as the caller wrote them.
    #[serde(borrow)]
    pub args: Raw<'b>,
}

impl<'b> ExecRequest<'b> {
    /// Reads `body`.
    ///
    /// # Errors
    /// The reader's, with the place: also for a member that occurs twice, or is unknown. Those of `args` are not looked at.
    pub fn read(body: &'b [u8]) -> Result<Self, json::Error> {
        json::from_slice(body, BOUNDS)
    }
}

/// Answer to a call: `{"ok":true,"result":…}` or `{"ok":false,"error":{"code","message"}}`.
#[derive(Debug, Clone, PartialEq)]
pub enum ExecAnswer {
    /// The tool gave a result.
    Done {
        /// The result, in the tool's own shape.
        result: serde_json::Value,
    },
    /// The call has no result.
    Failed {
        /// The reason.
        error: ExecError,
    },
}

impl ExecAnswer {
    /// Returns the answer with the tool's result.
    #[must_use]
    pub const fn done(result: serde_json::Value) -> Self {
        Self::Done { result }
    }

    /// Returns the answer without a result.
    pub fn failed(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { error: ExecError { code: code.into(), message: message.into() } }
    }
}

impl Serialize for ExecAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut answer = serializer.serialize_struct("ExecAnswer", 2)?;
        answer.serialize_field("ok", &matches!(self, Self::Done { .. }))?;
        match self {
            Self::Done { result } => answer.serialize_field("result", result)?,
            Self::Failed { error } => answer.serialize_field("error", error)?,
        }
        answer.end()
    }
}

/// Reason why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecError {
    /// Stable code: a refusal's, or one of the tool gateway's.
    pub code: String,
    /// Description for a person or a model.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_four_members_once() {
        let body = br#"{"runId":"r1","callId":"c1","tool":"core__get_current_time","args":{"zone": "UTC"}}"#;
        let read = ExecRequest::read(body).unwrap();
        assert_eq!((read.run_id.as_str(), read.tool.as_str()), ("r1", "core__get_current_time"));
        assert_eq!(read.args.get(), r#"{"zone": "UTC"}"#);
        for bad in [
            r#"{"runId":"r1","callId":"c1","tool":"a","tool":"b","args":{}}"#,
            r#"{"runId":"r1","callId":"c1","tool":"a","args":{},"Tool":"b"}"#,
            r#"{"runId":"r1","callId":"c1","tool":"a"}"#,
            r#"{"runId":"r1","callId":"c1","tool":"a b","args":{}}"#,
            r#"{"runId":"r1","callId":"","tool":"a","args":{}}"#,
            r#"{"runId":"r1","callId":"c1","tool":"a","args":{}} {}"#,
            r#"[{"runId":"r1","callId":"c1","tool":"a","args":{}}]"#,
            r#"["r1","c1","a",{}]"#,
        ] {
            assert!(ExecRequest::read(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_answer_says_whether_it_is_ok() {
        let done = ExecAnswer::done(serde_json::json!({ "now": 1 }));
        assert_eq!(serde_json::to_string(&done).unwrap(), r#"{"ok":true,"result":{"now":1}}"#);
        let failed = ExecAnswer::failed("policy_denied", "no");
        let text = serde_json::to_string(&failed).unwrap();
        assert_eq!(text, r#"{"ok":false,"error":{"code":"policy_denied","message":"no"}}"#);
    }
}
