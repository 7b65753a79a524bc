//! Reads the frame of a request.

use platform_core::json::RawBuf;

use super::{
    params::{ClosedList, MethodParams},
    refusal::FrameRefusal,
};

/// Largest frame of a client, in bytes.
pub const MAX_FRAME: usize = 512 << 10;
/// Longest id of a request, in bytes.
const MAX_ID: usize = 256;
/// Longest name of a method, in bytes.
const MAX_METHOD: usize = 128;

const FRAME: ClosedList = ClosedList { read: &["type", "id", "method", "params"], ignored: &["traceparent"] };

/// Request of a client.
#[derive(Debug, Clone)]
pub struct ClientRequest {
    /// Id that its answer names.
    pub id: String,
    /// Name of the method, which need not exist.
    pub method: String,
    /// Parameters, unread.
    pub params: Option<RawBuf>,
}

impl ClientRequest {
    /// Reads a frame.
    ///
    /// # Errors
    /// If the text is malformed or another kind of frame, has an unknown member, or exceeds a bound.
    pub fn read(text: &str) -> Result<Self, FrameRefusal> {
        let frame = MethodParams::of_frame(text, MAX_FRAME, FRAME)?;
        let kind: String = frame.required("type")?;
        if kind != "req" {
            return Err(frame.refuse("at /type: must be \"req\""));
        }
        let id = frame.text("id")?;
        let method = frame.text("method")?;
        if id.len() > MAX_ID || method.len() > MAX_METHOD {
            return Err(frame.refuse(&format!("`id` has at most {MAX_ID} bytes, and `method` {MAX_METHOD}")));
        }
        Ok(Self { id, method, params: frame.part("params").cloned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_are_frames() {
        for refused in [
            r#"{"type":"event","id":"1","method":"m"}"#,
            r#"{"type":"req","id":"","method":"m"}"#,
            r#"{"type":"req","id":"1"}"#,
            r#"{"type":"req","id":7,"method":"m"}"#,
            r#"{"type":"req","id":"1","method":"m","run":"r"}"#,
            "not JSON",
        ] {
            assert!(ClientRequest::read(refused).is_err(), "{refused}");
        }
        let read = ClientRequest::read(r#"{"type":"req","id":"1","method":"m","traceparent":"x"}"#).unwrap();
        assert_eq!((read.id.as_str(), read.method.as_str(), read.params.is_none()), ("1", "m", true));
    }
}
