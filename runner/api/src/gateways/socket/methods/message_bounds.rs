//! Cuts the messages of a session to what an answer has room for. Pure.

use serde_json::{Value, json};

/// Most bytes of the texts in an answer.
pub(super) const MAX_TEXTS: usize = 1 << 20;

/// Most of a session's messages that an answer has.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageBounds {
    pub(super) turns: u32,
    /// Bytes of all texts. At least those of two texts.
    pub(super) bytes: usize,
    pub(super) text: TextBound,
}

/// Longest text of a message. What is longer is cut.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextBound {
    Bytes(usize),
    Chars(usize),
}

/// Words of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct TurnTexts<'t> {
    pub(super) question: &'t str,
    pub(super) asked_at: i64,
    pub(super) answer: Option<&'t str>,
    pub(super) answered_at: i64,
}

/// Message of a session, cut.
#[derive(Debug, PartialEq)]
pub(super) struct SessionMessage {
    role: &'static str,
    text: String,
    at: i64,
}

impl TextBound {
    pub(super) fn cut(self, text: &str) -> &str {
        let end = match self {
            Self::Bytes(most) => text.floor_char_boundary(most),
            Self::Chars(most) => text.char_indices().nth(most).map_or(text.len(), |(at, _)| at),
        };
        &text[..end]
    }
}

impl MessageBounds {
    /// Returns the messages of a turn, the newest first, and takes their room; `None` unless all of them fit.
    pub(super) fn admit(&mut self, turn: TurnTexts<'_>) -> Option<Vec<SessionMessage>> {
        let question = ("user", Some(turn.question), turn.asked_at);
        let answer = ("assistant", turn.answer, turn.answered_at);
        let texts = [answer, question].into_iter().filter_map(|(role, text, at)| Some((role, text?, at)));
        let cut = texts.map(|(role, text, at)| (role, self.text.cut(text), at));
        let size = cut.clone().map(|(_, text, _)| text.len()).sum();
        let room = self.bytes.checked_sub(size)?;
        let messages =
            cut.map(|(role, text, at)| SessionMessage { role, text: text.to_owned(), at }).collect();
        self.bytes = room;
        Some(messages)
    }
}

impl SessionMessage {
    /// Returns the message as one of a history.
    pub(super) fn to_json(&self) -> Value {
        let Self { role, text, at } = self;
        json!({ "role": role, "content": [{ "type": "text", "text": text }], "timestamp": at })
    }

    /// Returns the message as one of a preview.
    pub(super) fn to_preview(&self) -> Value {
        json!({ "role": self.role, "text": self.text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(TextBound::Bytes(3).cut("ä€x"), "ä");
        assert_eq!(TextBound::Chars(2).cut("ä€x"), "ä€");
        for bound in [TextBound::Bytes(6), TextBound::Chars(3)] {
            assert_eq!(bound.cut("ä€x"), "ä€x");
        }
    }

    #[test]
    fn turns_are_admitted_while_there_is_room() {
        let mut bounds = MessageBounds { turns: 9, bytes: 20, text: TextBound::Bytes(8) };
        let turn = |answer| TurnTexts { question: "question", asked_at: 1, answer, answered_at: 2 };
        let messages = bounds.admit(turn(Some("a long answer"))).unwrap();
        let shown: Vec<_> = messages.iter().map(SessionMessage::to_preview).collect();
        let expected = [("assistant", "a long a"), ("user", "question")];
        assert_eq!(shown, expected.map(|(role, text)| json!({ "role": role, "text": text })));
        assert_eq!(bounds.admit(turn(None)), None, "4 bytes are left");
        let short = TurnTexts { question: "more", ..turn(None) };
        assert_eq!(bounds.admit(short).unwrap().len(), 1);
        assert_eq!(bounds.bytes, 0);
    }
}
