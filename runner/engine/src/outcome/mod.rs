//! Derives the result of a run from the end of its agent: an answer, or the reason why it is missing. Pure.
//!
//! Three facts decide: the end of the agent, the error code that it printed, and the end of its last call at the data
//! plane. The text of an answer never decides. If an agent failed because its last call failed, that call is the
//! reason.

pub(crate) mod call;
pub(crate) mod container;
pub(crate) mod turn;
