//! Lists the tools of the run through `tools/list` of the Model Context Protocol.

use platform_core::{
    host_tools::{MCP_PATH, exec::ExecError},
    json::{self, Raw},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{answer::HttpAnswer, arguments::ListForm, error::Error, gateway, settings::ToolSettings};

/// Answer to `tools/list`.
#[derive(Deserialize)]
struct ListAnswer<'a> {
    #[serde(borrow)]
    result: ListResult<'a>,
}

#[derive(Deserialize)]
struct ListResult<'a> {
    #[serde(borrow)]
    tools: Vec<ListedTool<'a>>,
}

/// A tool as the list has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedTool<'a> {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(borrow)]
    input_schema: Raw<'a>,
}

/// Error of JSON-RPC.
#[derive(Deserialize)]
struct RpcFailure {
    error: RpcError,
}

#[derive(Deserialize)]
struct RpcError {
    message: String,
    data: Option<RpcErrorData>,
}

/// Part of an error that the gateway adds.
#[derive(Deserialize)]
struct RpcErrorData {
    code: String,
}

/// Returns the list as text.
pub(crate) fn list(settings: &ToolSettings, form: ListForm) -> Result<String, Error> {
    let question = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = gateway::post(&settings.gateway, MCP_PATH, question, None)?;
    let tools = read_tools(&answer)?;
    match form {
        ListForm::Text => Ok(tools.iter().map(ListedTool::line).collect()),
        ListForm::Json => {
            let tools: Vec<_> = tools.iter().map(ListedTool::json).collect();
            Ok(format!("[{}]\n", tools.join(",")))
        }
    }
}

fn read_tools(answer: &HttpAnswer) -> Result<Vec<ListedTool<'_>>, Error> {
    let body = json_of(&answer.body);
    if answer.status == 200
        && let Ok(ListAnswer { result }) = json::from_slice(body, gateway::BOUNDS)
    {
        return Ok(result.tools);
    }
    if let Some(refusal) = gateway::reason_of(answer, None) {
        return Err(refusal);
    }
    let no_answer = |reason| Error::NoAnswer { reason, call_id: None };
    Err(match json::from_slice(body, gateway::BOUNDS) {
        Ok(RpcFailure { error: RpcError { message, data: Some(RpcErrorData { code }) } }) => {
            gateway::refused(answer.status, ExecError { code, message }, None)
        }
        Ok(RpcFailure { error }) => no_answer(error.message),
        Err(_) => no_answer(format!("status {} without a list of tools", answer.status)),
    })
}

/// Returns the JSON in `body`, which may be sent as the only event of a stream.
fn json_of(body: &[u8]) -> &[u8] {
    let mut lines = body.split(|byte| *byte == b'\n');
    let data =
        lines.find_map(|line| line.strip_prefix(b"data:").filter(|data| data.trim_ascii().starts_with(b"{")));
    if body.trim_ascii_start().starts_with(b"{") { body } else { data.unwrap_or(body) }
}

impl ListedTool<'_> {
    fn json(&self) -> String {
        let [name, description] = [&self.name, &self.description].map(|text| Value::from(text.as_str()));
        let schema = gateway::line_of(self.input_schema);
        format!(r#"{{"name":{name},"description":{description},"inputSchema":{schema}}}"#)
    }

    /// Returns the name and the first line of the description.
    fn line(&self) -> String {
        let first = self.description.lines().next().unwrap_or_default();
        let printable = |text: &str| text.chars().filter(|char| !char.is_control()).collect::<String>();
        format!("{:<32} {}\n", printable(&self.name), printable(first)).replace(" \n", "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_a_stream_is_read() {
        for body in [
            "{\"a\":1}",
            "event: message\ndata: {\"a\":1}\n\n",
            "id: 1\nretry: 9\ndata:\n\ndata: {\"a\":1}\n\n",
        ] {
            assert_eq!(json_of(body.as_bytes()).trim_ascii(), b"{\"a\":1}", "{body}");
        }
    }

    #[test]
    fn a_line_has_no_control_characters() {
        let tool = ListedTool {
            name: "a__b".into(),
            description: "one\u{1b}[2J\ntwo".into(),
            input_schema: Raw::NULL,
        };
        assert_eq!(tool.line(), format!("{:<32} one[2J\n", "a__b"));
    }
}
