//! Reads the documents of an answer, one after the other. Events like the one before are only measured.

use super::{
    StreamProgress, answer::AnswerReader, answer_field::AnswerField, event_frame::EventFrame, scan::Scanner,
};

/// Beginning of a document or event, which may be no object.
#[derive(Debug, Default)]
pub(super) struct BodyStart {
    word: [u8; 8],
    length: u64,
}

impl BodyStart {
    fn note(&mut self, bytes: &[u8]) {
        let at = usize::try_from(self.length).unwrap_or(usize::MAX);
        if let Some(room) = self.word.get_mut(at..) {
            room.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        }
        self.length += bytes.len() as u64;
    }

    /// Returns whether it is the mark that ends OpenAI's streams.
    fn is_done(&self) -> bool {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        self.word.get(..length).is_some_and(|word| word.trim_ascii() == b"[DONE]")
    }
}

/// Reader of the documents of one answer.
#[derive(Debug)]
pub(super) struct DocumentReader {
    scanner: Scanner<AnswerField>,
    frame: EventFrame,
}

impl DocumentReader {
    pub(super) const fn new() -> Self {
        Self { scanner: Scanner::new(), frame: EventFrame::new() }
    }

    /// Reads the next bytes of a possible document.
    pub(super) fn read(&mut self, data: &[u8], start: &mut BodyStart, reader: &mut AnswerReader<'_, '_>) {
        if !self.scanner.is_object() {
            start.note(data);
        }
        self.scanner.feed(data, reader);
    }

    /// Reads the next bytes of an event. An event that came whole and fits the frame of the last one is only measured.
    pub(super) fn read_event(
        &mut self,
        data: &[u8],
        start: &mut BodyStart,
        reader: &mut AnswerReader<'_, '_>,
    ) {
        let is_first = start.length == 0 && !self.scanner.is_object() && reader.sink.is_none();
        if is_first && let Some(bytes) = self.frame.measure(data) {
            reader.report.text_bytes += bytes;
            return self.scanner.pass_over(AnswerField::Event);
        }
        self.read(data, start, reader);
        let is_whole = self.scanner.is_object() && !self.scanner.is_open();
        if is_first && let Some(text) = reader.only_text().filter(|_| is_whole) {
            self.frame.learn(data, text);
        }
    }

    /// Ends an event, or a whole answer.
    pub(super) fn end(&mut self, start: &mut BodyStart, reader: &mut AnswerReader<'_, '_>) {
        self.scanner.finish(reader);
        let start = std::mem::take(start);
        if self.scanner.is_object() {
            reader.end();
        } else if start.is_done() && reader.root == AnswerField::Event {
            reader.report.stage = StreamProgress::Complete;
        } else {
            // Nothing is known of it but that it came.
            reader.report.text_bytes += start.length;
        }
        self.scanner.reset();
    }

    /// Returns the capacity of the scanner's buffer.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn kept(&self) -> usize {
        self.scanner.kept()
    }

    /// Returns whether a document has begun and not ended.
    pub(super) fn is_open(&self) -> bool {
        self.scanner.is_open()
    }

    /// Ends a document that was cut off, without the effects of a regular end.
    pub(super) fn cut(&mut self, reader: &mut AnswerReader<'_, '_>) {
        self.scanner.finish(reader);
    }
}
