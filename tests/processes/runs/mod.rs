//! Tests runs from request to clean-up: the registry of agents, the queue, warm containers, events, removal.

mod billing;
mod up;
