//! Client of long-running OpenClaw gateways.
//!
//! Empty so far: gateways are not driven yet, agents run in containers of their own (`runner`). The crate
//! holds its place in the workspace, and the one edge between siblings that the tidy test allows.
