//! Reads `stream_options`, and makes a stream end with its usage.

use std::ops::Range;

use bytes::Bytes;

use super::{
    edits::Edits,
    json::JsonValue,
    walk::{Member, Walk},
};
use crate::policy::{Label, Reason, Rejection};

/// `stream_options` as they came.
#[derive(Debug)]
pub(super) struct StreamOptions {
    /// Null, or the braces with what is between them.
    at: Range<usize>,
    members: OptionMembers,
    usage: Option<Range<usize>>,
    pub(super) usage_asked: bool,
}

/// Presence of members, which a comma must separate from a new one.
#[derive(Debug, Clone, Copy)]
enum OptionMembers {
    Empty,
    Present,
}

impl<'a> Walk<'a, '_> {
    /// Reads the options of a stream.
    pub(super) fn stream_options(&mut self, member: &Member<'a>) -> Result<StreamOptions, Rejection> {
        self.cursor.next_token();
        let start = self.cursor.at();
        let mut options = StreamOptions {
            at: start..start,
            members: OptionMembers::Empty,
            usage: None,
            usage_asked: false,
        };
        match self.cursor.value()? {
            JsonValue::Null => {}
            JsonValue::Object => self.members(|walk, member| {
                options.members = OptionMembers::Present;
                match &*member.name {
                    b"include_usage" => {
                        walk.cursor.next_token();
                        let start = walk.cursor.at();
                        options.usage_asked = walk.flag(&member)? == Some(true);
                        options.usage = Some(start..walk.cursor.at());
                        Ok(())
                    }
                    b"include_obfuscation" | b"continuous_usage_stats" => walk.skip(),
                    name => {
                        walk.refuse(Rejection::new(Reason::UnknownField(Label::of(name)), member.at))?;
                        walk.skip()
                    }
                }
            })?,
            _ => return Err(Rejection::wrong_type(&member.name, "an object", member.at)),
        }
        options.at.end = self.cursor.at();
        Ok(options)
    }
}

impl StreamOptions {
    /// Makes the stream end with its usage, whatever the other options are.
    pub(super) fn force_usage(options: Option<&Self>, edits: &mut Edits) {
        let Some(options) = options else {
            return edits.insert("stream_options", br#"{"include_usage":true}"#);
        };
        let (at, put): (_, &'static [u8]) = match (&options.usage, options.members) {
            _ if options.usage_asked => return,
            (Some(at), _) => (at.clone(), b"true"),
            (None, OptionMembers::Empty) => (options.at.clone(), br#"{"include_usage":true}"#),
            (None, OptionMembers::Present) => {
                (options.at.start..options.at.start + 1, br#"{"include_usage":true,"#)
            }
        };
        edits.replace(at, Bytes::from_static(put));
    }
}
