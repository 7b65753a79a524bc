//! Extracts clean pieces from an answer: only new text, whatever a gateway repeats or leaves out.
//!
//! In both dialects each piece carries all of the part so far, so the next piece makes up for a lost one. A piece
//! without that text is used as it is.

use crate::wire::run::{Source, TextPiece};

/// Separator between two parts of an answer, as between the texts at its end.
const PART_SEPARATOR: &str = "\n\n";

/// Most finished parts that are remembered, so that none is reported twice.
const MAX_FINISHED_PARTS: usize = 64;

/// Text of an answer that has been reported so far.
#[derive(Debug, Default)]
pub(crate) struct Deltas {
    source: Option<Source>,
    part: Option<String>,
    finished: Vec<String>,
    reported: String,
    /// True once any text was reported.
    has_text: bool,
}

/// Position of a piece in its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    First,
    Within,
}

impl Deltas {
    /// Returns the new text that `text` adds; `None` if it adds nothing.
    pub(crate) fn add(&mut self, text: &TextPiece<'_>) -> Option<String> {
        if *self.source.get_or_insert(text.source) != text.source {
            return None;
        }
        if let Some(part) = text.part.as_deref()
            && !self.move_to_part(part)
        {
            return None;
        }
        let Some(whole) = text.whole.as_deref() else {
            let delta = text.delta.as_deref()?;
            self.reported.push_str(delta);
            return self.report(delta.to_owned(), Position::Within);
        };
        if let Some(new) = whole.strip_prefix(self.reported.as_str()) {
            let position = if self.reported.is_empty() { Position::First } else { Position::Within };
            self.reported.push_str(new);
            return self.report(new.to_owned(), position);
        }
        if self.reported.starts_with(whole) {
            return None;
        }
        let rewritten = text.rewritten || text.part.is_some();
        whole.clone_into(&mut self.reported);
        if rewritten {
            // Text that was reported cannot be taken back; the text at the end is what counts.
            return None;
        }
        self.report(whole.to_owned(), Position::First)
    }

    /// Returns whether any text was reported.
    pub(crate) const fn has_text(&self) -> bool {
        self.has_text
    }

    fn report(&mut self, new: String, position: Position) -> Option<String> {
        if new.is_empty() {
            return None;
        }
        let begins_part = self.has_text && position == Position::First;
        self.has_text = true;
        Some(if begins_part { format!("{PART_SEPARATOR}{new}") } else { new })
    }

    /// Moves on to `part`; returns false if that part was finished before.
    fn move_to_part(&mut self, part: &str) -> bool {
        if self.part.as_deref() == Some(part) {
            return true;
        }
        if self.finished.iter().any(|finished| finished == part) {
            return false;
        }
        if let Some(left) = self.part.replace(part.to_owned()) {
            if self.finished.len() == MAX_FINISHED_PARTS {
                self.finished.remove(0);
            }
            self.finished.push(left);
            self.reported.clear();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn agent<'a>(part: Option<&'a str>, delta: &'a str, whole: &'a str) -> TextPiece<'a> {
        TextPiece {
            source: Source::Agent,
            delta: Some(Cow::Borrowed(delta)),
            whole: (!whole.is_empty()).then_some(Cow::Borrowed(whole)),
            part: part.map(Cow::Borrowed),
            rewritten: false,
        }
    }

    fn reported(texts: &[TextPiece<'_>]) -> String {
        let mut deltas = Deltas::default();
        texts.iter().filter_map(|text| deltas.add(text)).collect()
    }

    #[test]
    fn repeated_and_late_pieces_are_reported_once() {
        let a = agent(None, "a", "a");
        let ab = agent(None, "b", "ab");
        let abc = agent(None, "c", "abc");
        for (texts, why) in [
            (vec![a.clone(), ab.clone(), abc.clone()], "in order"),
            (vec![a.clone(), a.clone(), ab.clone(), ab.clone(), abc.clone()], "twice"),
            (vec![a.clone(), abc.clone(), ab.clone()], "out of order"),
            (vec![abc.clone(), a, ab], "the last one first"),
            (vec![abc.clone(), abc], "only the last one"),
        ] {
            assert_eq!(reported(&texts), "abc", "{why}");
        }
        assert_eq!(reported(&[agent(None, "a", ""), agent(None, "b", "")]), "ab", "pieces without a whole");
    }

    #[test]
    fn the_other_kind_of_event_says_nothing_new() {
        let chat = TextPiece { source: Source::Chat, part: None, ..agent(None, "a", "a b") };
        assert_eq!(
            reported(&[agent(Some("m:1"), "a", "a"), chat.clone(), agent(Some("m:1"), " b", "a b")]),
            "a b"
        );
        assert_eq!(reported(&[chat]), "a b");
    }

    #[test]
    fn parts_are_told_one_after_the_other() {
        let texts = [
            agent(Some("m:1"), "Look", "Look"),
            agent(Some("m:2"), "Look", "Look"),
            agent(Some("m:1"), "Looking", "Looking"),
            agent(Some("m:2"), "!", "Look!"),
        ];
        assert_eq!(reported(&texts), "Look\n\nLook!");
        let old = [agent(None, "Let me", "Let me"), agent(None, "Done", "Done"), agent(None, ".", "Done.")];
        assert_eq!(reported(&old), "Let me\n\nDone.");
    }

    #[test]
    fn a_rewritten_part_continues_from_its_new_text() {
        let rewritten = TextPiece { rewritten: true, ..agent(None, "Hi", "Hi") };
        assert_eq!(
            reported(&[agent(None, "<b>H", "<b>H"), rewritten, agent(None, " you", "Hi you")]),
            "<b>H you"
        );
    }
}
