//! What the end of an agent means: an answer, or who is to blame that there is none. Pure.
//!
//! Decided by how it ended, by what it is known to say of that, and by how the data plane saw the run's last call end; never by the
//! words of an answer. An agent that has failed because a model did not answer has no better reason than that.

pub(crate) mod call;
pub(crate) mod container;
pub(crate) mod turn;
