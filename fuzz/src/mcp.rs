//! Checks a message of the Model Context Protocol. An input is the body of `POST /mcp`.
//!
//! A message is read if it is one JSON object that is not nested too deeply. It has the members of JSON-RPC 2.0, each once
//! and no other. Its id is a number or a text. `tools/call` has an id, and names one tool. Then the message
//! has what serde_json finds there: method, id, tool and the text of the arguments. The server's own reading of it has an
//! id where that has one, and a call only where that has a tool.

use platform_core::host_tools::{
    mcp::McpMessage,
    mcp_request::{Asks, McpRequest},
};

use crate::{
    SPOILED,
    json::{Members, is_shallow, text_of},
    names,
};

const MEMBERS: [&str; 4] = ["jsonrpc", "id", "method", "params"];

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let read = McpMessage::read(input);
    let expected = std::str::from_utf8(input).ok().and_then(expected);
    let found = read.as_ref().ok().map(|message| {
        let tool = message.tool.as_ref().map(|tool| tool.as_str().to_owned());
        (message.id.as_deref(), message.method.clone(), tool, message.arguments.as_deref())
    });
    assert_eq!(found, expected, "{:?}", read.as_ref().err());
    if let (Ok(message), Ok(request)) = (read, McpRequest::read(input)) {
        assert_eq!(message.id.is_some(), request.id.is_some());
        assert!(message.tool.is_some() || request.asks != Asks::Call);
    }
}

/// Id, method, tool and arguments.
type Parts<'b> = (Option<&'b str>, String, Option<String>, Option<&'b str>);

/// Returns the parts of a message that must be read.
fn expected(body: &str) -> Option<Parts<'_>> {
    let members = Members::of(body)?;
    let is_known = |(name, _): &(String, &str)| MEMBERS.contains(&name.as_str());
    let is_object = is_shallow(body) && members.twice().is_none() && members.0.iter().all(is_known);
    if !is_object || members.get("jsonrpc")? != r#""2.0""# {
        return None;
    }
    let method = text_of(members.get("method")?)?;
    let id = members.given("id");
    let params = members.given("params").unwrap_or("null");
    if !id.is_none_or(is_id) {
        return None;
    }
    if method != "tools/call" {
        return Some((id, method, None, None));
    }
    let params = Members::of(params)?;
    let tool = text_of(params.get("name")?)?;
    let is_reserved = |(name, _): &(String, &str)| name.starts_with("$serde_json::private::");
    let is_call = params.twice().is_none() && !params.0.iter().any(is_reserved);
    (id.is_some() && is_call && names::is_tool(&tool))
        .then(|| (id, method, Some(tool), params.given("arguments")))
}

fn is_id(text: &str) -> bool {
    let is_number = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    text.starts_with('"') || (is_number && !(SPOILED && text.len() > 1))
}
