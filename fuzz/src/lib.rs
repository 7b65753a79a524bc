//! Checks properties at the inputs of the proxy, of host tools, of gateways and of their clients, for every input; one function per input.
//!
//! The fuzz targets call these functions with libFuzzer's inputs. Each module states at its top what an input means, so
//! that seeds can be read and written by hand. Oracles are serde_json and plain rewritings of the rules, never the code
//! under test.

pub mod answer;
pub mod body;
pub mod client;
pub mod exec;
pub mod gateway;
pub mod header;
pub mod limits;
pub mod mcp;
pub mod path;
pub mod stream;
pub mod text;
pub mod token;

mod json;
mod names;
mod reach;
mod truth;
mod words;

use platform_core::grant::RunGrant;
use serde_json::Value;

/// True if the oracles must be wrong, which shows a fuzzer that finds nothing.
pub(crate) const SPOILED: bool = cfg!(feature = "spoiled");

/// Returns a grant with the members `more` besides those that every grant has.
pub(crate) fn grant(more: Value) -> Option<RunGrant> {
    let mut grant = serde_json::json!({ "run_id": "r1", "account": "acct-1", "graph": "sandbox:agent" });
    for (name, value) in more.as_object().into_iter().flatten() {
        grant[name] = value.clone();
    }
    serde_json::from_value(grant).ok()
}
