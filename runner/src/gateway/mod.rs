//! OpenClaw gateways: where they are, and how they are spoken to. A run that is a session of one is lived in `run`.

mod place;

pub(crate) use self::place::{Place, SOCKET};
