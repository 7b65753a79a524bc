//! Sets Sluicegate up for `sluice init`: asks questions, checks the upstream, writes the configuration and the key.
//!
//! Nothing is written before all checks have passed. The key is written to its file and passed to `sluice-proxy`, which
//! asks the upstream with it. It is never an argument, and this process holds it only until then.

mod dialogue;
mod draft;
mod error;
mod key;
mod site;
mod upstream_check;

pub(crate) use self::{
    dialogue::Dialogue,
    draft::Draft,
    error::Error,
    key::{GivenKey, KeyOrigin},
    site::Site,
    upstream_check::ask_upstream,
};
