//! Sends the request of a real agent in the middle of its work, and gets an answer with a real gateway's headers.

use super::{Load, Workload};
use crate::request;

pub(super) const WORKLOAD: Workload = Workload {
    name: "agent-32",
    about: "an agent's request: 50 messages and 30 tools in 37 KB, 20 headers; the answer has 30; 32 connections",
    load: Load::Closed { connections: 32 },
    request: request::agent,
    ..Workload::CLOSED
};
