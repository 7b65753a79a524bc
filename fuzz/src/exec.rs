//! Checks the body of `POST /tool/exec`. An input is the body.
//!
//! A body is read if it is one JSON object that has each of four members once, and no other. Its ids and its name follow
//! their rules, and it is not nested too deeply. Then the call has what serde_json finds there: ids, name and the text of
//! the arguments.

use platform_core::host_tools::exec::ExecRequest;

use crate::{
    SPOILED,
    json::{Members, is_shallow, text_of},
    names,
};

/// Checks one input.
///
/// # Panics
/// If a property is violated.
pub fn holds(input: &[u8]) {
    let read = ExecRequest::read(input);
    let expected = std::str::from_utf8(input).ok().and_then(expected);
    let found = read.as_ref().ok().map(|call| {
        let ids = [call.run_id.as_str(), call.call_id.as_str(), call.tool.as_str()];
        (ids.map(str::to_owned), call.args.get())
    });
    assert_eq!(found, expected, "{:?}", read.err());
}

/// Returns run, call id, tool and arguments of a body that must be read.
fn expected(body: &str) -> Option<([String; 3], &str)> {
    let members = Members::of(body)?;
    if members.0.len() != 4 {
        return None;
    }
    let [run, call, tool] = ["runId", "callId", "tool"].map(|name| members.get(name).and_then(text_of));
    let (run, call, tool, args) = (run?, call?, tool?, members.get("args")?);
    let follow = names::is_run(&run) && names::is_call(&call) && names::is_tool(&tool);
    let is_spoiled = SPOILED && call.len() > 2;
    (follow && is_shallow(body) && !is_spoiled).then_some(([run, call, tool], args))
}
