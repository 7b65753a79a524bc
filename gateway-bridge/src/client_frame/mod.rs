//! Reads what clients of a gateway send, for who serves them in its place.
//!
//! A frame, its parameters and the words of `connect` are read against closed lists, and a message is told from a command.
//! What is refused has the words of OpenClaw, on which its clients act. Pure: fuzzers read the same.

mod introduction;
mod message;
mod params;
mod refusal;
mod request;

pub use self::{
    introduction::Introduction,
    message::{MessageKind, read_message},
    params::{ClosedList, MethodParams},
    refusal::{FrameRefusal, RefusalCause},
    request::{ClientRequest, MAX_FRAME},
};
