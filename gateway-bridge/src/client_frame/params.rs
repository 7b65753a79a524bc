//! Reads the members of what a client sends against a closed list. An unknown member is refused by its name, in the words
//! of OpenClaw, on which its clients act.

use std::collections::BTreeMap;

use platform_core::json::{self, Bounds, RawBuf};
use serde::de::DeserializeOwned;

use super::refusal::{FrameRefusal, RefusalCause};

/// Deepest nesting of a frame.
const MAX_DEPTH: usize = 32;
/// Most values of a frame.
const MAX_VALUES: usize = 20_000;
/// Longest name of a member that a refusal repeats, in characters.
const MAX_NAME: usize = 64;

/// Members of an object that a client sent, all of which are known.
#[derive(Debug)]
pub struct MethodParams {
    subject: String,
    members: BTreeMap<String, RawBuf>,
}

/// Members that an object may have.
#[derive(Debug, Clone, Copy)]
pub struct ClosedList {
    /// Members that are read.
    pub read: &'static [&'static str],
    /// Members that clients send by themselves, and that change nothing here.
    pub ignored: &'static [&'static str],
}

impl MethodParams {
    /// Reads the frame `text`, of at most `most` bytes.
    ///
    /// # Errors
    /// If it is anything but an object, has an unknown member, or exceeds a bound.
    pub fn of_frame(text: &str, most: usize, list: ClosedList) -> Result<Self, FrameRefusal> {
        let bounds = Bounds::of(most).with_depth(MAX_DEPTH).with_values(MAX_VALUES);
        let members = json::from_str(text, bounds)
            .map_err(|error| RefusalCause::Frame.with(format!("invalid request frame: {error}")))?;
        Self { subject: "request frame".to_owned(), members }.within(list)
    }

    /// Reads the object `text`, which is a part of a frame; `subject` says of what.
    ///
    /// # Errors
    /// If it is anything but an object, or has an unknown member.
    pub fn of_part(subject: &str, text: Option<&RawBuf>, list: ClosedList) -> Result<Self, FrameRefusal> {
        let members = match text {
            None => BTreeMap::new(),
            Some(text) => text
                .read()
                .map_err(|error| RefusalCause::Params.with(format!("invalid {subject}: {error}")))?,
        };
        Self { subject: subject.to_owned(), members }.within(list)
    }

    fn within(self, ClosedList { read, ignored }: ClosedList) -> Result<Self, FrameRefusal> {
        let is_known = |name: &str| read.contains(&name) || ignored.contains(&name);
        match self.members.keys().find(|name| !is_known(name)) {
            Some(unknown) => {
                let shown: String = unknown.chars().take(MAX_NAME).collect();
                Err(self.refuse(&format!("at root: unexpected property '{}'", shown.escape_default())))
            }
            None => Ok(self),
        }
    }

    /// Refuses the object for a reason.
    #[must_use]
    pub fn refuse(&self, why: &str) -> FrameRefusal {
        RefusalCause::Params.with(format!("invalid {}: {why}", self.subject))
    }

    /// Returns the text of a member.
    #[must_use]
    pub fn part(&self, name: &str) -> Option<&RawBuf> {
        self.members.get(name).filter(|value| value.get() != "null")
    }

    /// Reads a member that may be absent.
    ///
    /// # Errors
    /// If the member is of another kind.
    pub fn optional<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, FrameRefusal> {
        let read = self.part(name).map(RawBuf::read).transpose();
        read.map_err(|error| self.refuse(&format!("at /{name}: {error}")))
    }

    /// Reads a member that has to be there.
    ///
    /// # Errors
    /// If the member is missing, or of another kind.
    pub fn required<T: DeserializeOwned>(&self, name: &str) -> Result<T, FrameRefusal> {
        let missing = || self.refuse(&format!("must have required property '{name}'"));
        self.optional(name)?.ok_or_else(missing)
    }

    /// Reads a text that has to be there, and is not empty.
    ///
    /// # Errors
    /// If the member is missing, empty, or no text.
    pub fn text(&self, name: &str) -> Result<String, FrameRefusal> {
        let text: String = self.required(name)?;
        if text.is_empty() {
            return Err(self.refuse(&format!("at /{name}: must not have fewer than 1 characters")));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: ClosedList = ClosedList { read: &["message", "limit"], ignored: &["thinking"] };

    fn read(text: &str) -> Result<MethodParams, FrameRefusal> {
        let raw: RawBuf = json::from_str(text, Bounds::of(1 << 20)).unwrap();
        MethodParams::of_part("chat.send params", Some(&raw), LIST)
    }

    fn message(refusal: &FrameRefusal) -> String {
        refusal.message.clone()
    }

    #[test]
    fn an_unknown_parameter_is_named() {
        assert!(read(r#"{"message":"m","limit":null,"thinking":{"a":[1]}}"#).is_ok(), "control");
        let refused = message(&read(r#"{"message":"m","outboundHeaders":{}}"#).unwrap_err());
        assert_eq!(refused, "invalid chat.send params: at root: unexpected property 'outboundHeaders'");
        let refused = message(&read("[1]").unwrap_err());
        assert!(refused.starts_with("invalid chat.send params:"), "{refused}");
    }

    #[test]
    fn a_missing_parameter_is_named() {
        let read = read(r#"{"limit":"x"}"#).unwrap();
        let missing = message(&read.text("message").unwrap_err());
        assert_eq!(missing, "invalid chat.send params: must have required property 'message'");
        assert!(message(&read.optional::<u32>("limit").unwrap_err()).contains("at /limit"));
        assert_eq!(read.optional::<u32>("message").unwrap(), None);
    }

    #[test]
    fn a_frame_has_bounds() {
        let list = ClosedList { read: &["a"], ignored: &[] };
        let read = |text: &str| MethodParams::of_frame(text, 1 << 16, list).is_ok();
        assert!(read(r#"{"a":1}"#), "control");
        for refused in [
            format!(r#"{{"a":{}{}}}"#, "[".repeat(40), "]".repeat(40)),
            format!(r#"{{"a":[{}1]}}"#, "1,".repeat(20_001)),
            r#"{"a":1,"a":2}"#.to_owned(),
            "{".to_owned(),
            "7".to_owned(),
        ] {
            assert!(!read(&refused), "{}", &refused[..refused.len().min(40)]);
        }
    }
}
