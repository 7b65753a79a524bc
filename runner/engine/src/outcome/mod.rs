//! Decides what the end of an agent means: an answer, or the reason why there is none. Pure.
//!
//! Three facts decide: how the agent ended, what it is known to say of that, and how the data plane saw its last call
//! end. The words of an answer never decide. If an agent has failed because a model did not answer, that is the reason.

pub(crate) mod call;
pub(crate) mod container;
pub(crate) mod turn;
