//! What must hold of the proxy's doors, and of the one to gateways, whatever comes in, as one function per door. The fuzz targets call them with
//! libFuzzer's inputs; what an input means is written at the top of each module, so that seeds can be read and written
//! by hand. Oracles are serde_json and plain rewritings of the rules, never the code under test.

pub mod answer;
pub mod body;
pub mod gateway;
pub mod header;
pub mod limits;
pub mod path;
pub mod stream;
pub mod token;

mod json;
mod reach;
mod truth;
mod words;

use platform_core::grant::RunGrant;
use serde_json::Value;

/// Whether the oracles are to be wrong, so that a fuzzer which finds nothing is found out.
pub(crate) const SPOILED: bool = cfg!(feature = "spoiled");

/// A grant, its `more` members beside those that every grant has.
pub(crate) fn grant(more: Value) -> Option<RunGrant> {
    let mut grant = serde_json::json!({ "run_id": "r1", "account": "acct-1", "graph": "sandbox:agent" });
    for (name, value) in more.as_object().into_iter().flatten() {
        grant[name] = value.clone();
    }
    serde_json::from_value(grant).ok()
}
