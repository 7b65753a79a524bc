//! Fills a usage report with the fields of answers and of stream events, as they are read.
//!
//! Each field counts for itself, so that one of an unexpected type costs nothing but itself. Fields that depend on the
//! type of an event wait until the event has ended, because the type may come last.

use platform_core::{money::NanoDollars, route::Route, untrusted::JournalText};

use super::{
    AnswerDelta, Finality, StreamProgress, UsageReport,
    answer_field::{AnswerField, is_no_text},
    json::Json,
    scan::{Bracket, ContainerMode, StringText, TextRange, Visit, Wants},
    token_counts::{Figure, TokenCounts, parse_count},
};

pub(super) type DeltaSink<'t> = Option<&'t mut dyn FnMut(AnswerDelta<'_>)>;

/// Most bytes of one string that are kept, so that watchers see it in one piece.
const MAX_DELTA: usize = 64 << 10;
/// Most bytes of a name, a type or a number that are read.
const MAX_WORD: usize = 1 << 10;

/// State of the event or answer that is being read.
#[derive(Debug, Default)]
pub(super) struct EventFacts {
    kind: EventKind,
    /// Figures of the usage that is being read.
    counts: TokenCounts,
    /// Set once it has reported usage.
    has_counted: bool,
    /// OpenAI responses: status of the response once it has ended, and why it is incomplete.
    status: Option<JournalText>,
    reason: Option<JournalText>,
    /// Set if the part that is being read is a tool.
    is_tool: bool,
    part_name: Option<String>,
    /// Tool that begins with this event, or is named again.
    item: Option<String>,
    /// OpenAI responses: text that came before the type of its event.
    delta: Option<String>,
    text: EventText,
}

/// Content that distinguishes an event from others like it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EventText {
    #[default]
    Nothing,
    /// A single text, at this range of the piece that was read.
    Text(TextRange),
    /// More than that.
    More,
}

impl EventText {
    fn add(&mut self, range: Option<TextRange>) {
        *self = match (*self, range) {
            (Self::Nothing, Some(range)) => Self::Text(range),
            _ => Self::More,
        };
    }
}

impl EventFacts {
    /// Returns the number of bytes that are kept.
    #[cfg(any(test, feature = "internals"))]
    pub(super) fn kept(&self) -> usize {
        [&self.part_name, &self.item, &self.delta].into_iter().flatten().map(String::len).sum()
    }
}

/// The types of events that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EventKind {
    /// No type has come.
    #[default]
    Unknown,
    Error,
    TextDelta,
    ItemDone,
    /// The last event of a response, however that ended.
    ResponseEnded,
    ResponseFailed,
    MessageStop,
    Other,
}

impl EventKind {
    fn of(kind: &str) -> Self {
        match kind {
            "error" => Self::Error,
            "response.output_text.delta" => Self::TextDelta,
            "response.output_item.done" => Self::ItemDone,
            "response.completed" | "response.incomplete" | "response.cancelled" => Self::ResponseEnded,
            "response.failed" => Self::ResponseFailed,
            "message_stop" => Self::MessageStop,
            _ => Self::Other,
        }
    }
}

/// Visitor of a document that fills a [`UsageReport`].
pub(super) struct AnswerReader<'a, 't> {
    pub(super) route: Route,
    /// Field of the outermost object.
    pub(super) root: AnswerField,
    pub(super) event: &'a mut EventFacts,
    pub(super) report: &'a mut UsageReport,
    pub(super) sink: &'a mut DeltaSink<'t>,
}

impl Visit for AnswerReader<'_, '_> {
    type Field = AnswerField;
    const SKIPPED: AnswerField = AnswerField::Skipped;

    fn root(&self) -> AnswerField {
        self.root
    }

    fn member(&self, field: AnswerField, name: &[u8]) -> AnswerField {
        field.member(name)
    }

    fn element(&self, field: AnswerField) -> AnswerField {
        field.element()
    }

    fn wants(&self, field: AnswerField) -> Wants {
        match field {
            AnswerField::Skipped | AnswerField::OtherText | AnswerField::ContentPart => Wants::Beginning(0),
            AnswerField::Text | AnswerField::Content if self.sink.is_some() => Wants::All(MAX_DELTA),
            AnswerField::Delta if self.sink.is_some() => match self.event.kind {
                EventKind::TextDelta => Wants::All(MAX_DELTA),
                _ => Wants::Beginning(MAX_DELTA),
            },
            AnswerField::Text | AnswerField::Content | AnswerField::Delta => Wants::Beginning(0),
            _ => Wants::Beginning(MAX_WORD),
        }
    }

    fn begins(&mut self, field: AnswerField, bracket: Bracket) -> ContainerMode {
        if matches!(
            field,
            AnswerField::Error
                | AnswerField::Usage
                | AnswerField::FirstUsage
                | AnswerField::Part
                | AnswerField::Item
                | AnswerField::Block
        ) {
            self.event.text = EventText::More;
        }
        match field {
            AnswerField::Error => self.report.failed = true,
            AnswerField::Usage | AnswerField::FirstUsage => self.event.counts = TokenCounts::default(),
            AnswerField::Part | AnswerField::Item | AnswerField::Block => {
                self.event.is_tool = false;
                self.event.part_name = None;
            }
            _ => {}
        }
        field.container_mode(bracket)
    }

    fn ends(&mut self, field: AnswerField) {
        match field {
            AnswerField::Usage => self.note_usage(Finality::Final),
            AnswerField::FirstUsage => self.note_usage(Finality::Preliminary),
            AnswerField::Part | AnswerField::Block => {
                if let Some(name) = self.event.part_name.take().filter(|_| self.event.is_tool) {
                    self.report.text_bytes += if field == AnswerField::Part { name.len() as u64 } else { 0 };
                    self.note_tool(&name);
                }
            }
            AnswerField::Item => self.event.item = self.event.part_name.take().filter(|_| self.event.is_tool),
            _ => {}
        }
    }

    fn piece(&mut self, _place: AnswerField, text: StringText<'_>) {
        self.emit_text(text);
    }

    fn string(&mut self, field: AnswerField, text: StringText<'_>) {
        match field {
            AnswerField::Text | AnswerField::Content => {
                self.note_text(text);
                self.emit_text(text);
            }
            AnswerField::OtherText | AnswerField::ContentPart => self.note_text(text),
            AnswerField::Delta => {
                self.note_text(text);
                self.note_delta(text);
            }
            AnswerField::Model if self.report.model.is_some() => {}
            AnswerField::Error => self.report.failed = true,
            AnswerField::Figure(figure) => self.note_figure(figure, text.written()),
            AnswerField::Cost => self.note_cost(text.written()),
            _ => {
                if let Some(word) = text.decoded() {
                    self.note_word(field, &word);
                }
            }
        }
    }

    fn scalar(&mut self, field: AnswerField, raw: &[u8]) {
        match field {
            // A null is not an error.
            AnswerField::Error => self.report.failed |= raw != b"null",
            AnswerField::Figure(figure) => self.note_figure(figure, raw),
            AnswerField::Cost => self.note_cost(raw),
            _ => {}
        }
    }

    fn is_no_text(&self, name: &[u8]) -> bool {
        is_no_text(name)
    }

    fn measured(&mut self, bytes: u64) {
        self.event.text = EventText::More;
        self.report.text_bytes += bytes;
    }
}

impl AnswerReader<'_, '_> {
    /// Returns the position of the text of an event that says nothing else, and ends nothing.
    pub(super) fn only_text(&self) -> Option<TextRange> {
        match (self.event.text, self.event.kind) {
            (EventText::Text(range), EventKind::Unknown | EventKind::TextDelta | EventKind::Other) => {
                Some(range)
            }
            _ => None,
        }
    }

    fn note_text(&mut self, text: StringText<'_>) {
        self.event.text.add(text.range);
        self.report.text_bytes += text.bytes;
    }

    /// Ends the event or answer, which may be incomplete.
    pub(super) fn end(&mut self) {
        let event = std::mem::take(self.event);
        if let Some(text) = event.delta.filter(|_| event.kind == EventKind::TextDelta) {
            self.emit(AnswerDelta::Text(&text));
        }
        // A tool is named where its part begins; at its end it is named again.
        if let Some(name) = event.item.filter(|_| event.kind != EventKind::ItemDone) {
            self.note_tool(&name);
        }
        self.report.failed |= self.root == AnswerField::Event
            && matches!(event.kind, EventKind::Error | EventKind::ResponseFailed);
        let is_last = match self.route {
            Route::Responses => matches!(event.kind, EventKind::ResponseEnded | EventKind::ResponseFailed),
            Route::Messages => event.kind == EventKind::MessageStop,
            _ => false,
        };
        if is_last {
            self.report.stage = StreamProgress::Complete;
        }
        if let Some(status) = event.status {
            let is_incomplete = status.as_str() == "incomplete";
            let reason = event.reason.filter(|_| is_incomplete).unwrap_or(status);
            self.report.finish.get_or_insert(reason);
        }
        if event.has_counted {
            // Usage that comes before the text of the same event counts that text.
            self.report.text_bytes_counted = self.report.text_bytes;
        }
    }

    fn note_word(&mut self, field: AnswerField, word: &str) {
        match field {
            AnswerField::Kind => self.event.kind = EventKind::of(word),
            AnswerField::Model if self.report.model.is_none() => {
                self.report.model = Some(JournalText::of(word));
            }
            AnswerField::Status if !matches!(word, "in_progress" | "queued") => {
                self.event.text = EventText::More;
                self.event.status = Some(JournalText::of(word));
            }
            AnswerField::Reason => self.event.reason = Some(JournalText::of(word)),
            AnswerField::Finish | AnswerField::ChoiceFinish if !word.is_empty() => {
                self.report.stage = self.report.stage.max(StreamProgress::Finished);
                self.report.finish.get_or_insert_with(|| JournalText::of(word));
            }
            AnswerField::ToolName if !word.is_empty() => {
                self.report.text_bytes += word.len() as u64;
                self.note_tool(word);
            }
            AnswerField::PartKind => {
                self.event.is_tool =
                    matches!(word, "tool_use" | "server_tool_use" | "function_call" | "custom_tool_call");
            }
            AnswerField::PartName if !word.is_empty() => self.event.part_name = Some(word.to_owned()),
            _ => {}
        }
    }

    fn note_figure(&mut self, figure: Figure, number: &[u8]) {
        self.event.text = EventText::More;
        if figure != Figure::Total || self.route == Route::Embeddings {
            self.event.counts.note(figure, parse_count(number));
        }
    }

    fn note_cost(&mut self, number: &[u8]) {
        self.event.text = EventText::More;
        let cost = std::str::from_utf8(number).ok().and_then(NanoDollars::parse_dollars);
        self.report.cost = cost.or(self.report.cost);
    }

    fn note_usage(&mut self, count: Finality) {
        let later = std::mem::take(&mut self.event.counts);
        if !later.is_usage() {
            return;
        }
        self.report.counts.get_or_insert_default().merge(&later);
        self.report.finality = self.report.finality.max(count);
        if count == Finality::Final {
            self.event.has_counted = true;
            self.report.text_bytes_counted = self.report.text_bytes;
        }
    }

    fn note_tool(&mut self, name: &str) {
        self.event.text = EventText::More;
        self.report.tool(name);
        self.emit(AnswerDelta::Tool(name));
    }

    fn note_delta(&mut self, text: StringText<'_>) {
        match self.event.kind {
            EventKind::TextDelta => self.emit_text(text),
            EventKind::Unknown if self.sink.is_some() => self.event.delta = text.decoded().map(Into::into),
            _ => {}
        }
    }

    fn emit_text(&mut self, text: StringText<'_>) {
        if self.sink.is_some()
            && let Some(text) = text.decoded().filter(|text| !text.is_empty())
        {
            self.emit(AnswerDelta::Text(&text));
        }
    }

    fn emit(&mut self, delta: AnswerDelta<'_>) {
        if let Some(sink) = self.sink {
            sink(delta);
        }
    }
}

/// Returns whether the event `data` of a chat or completion stream reports nothing but usage: a count, no
/// error, and choices, if any, that say nothing. OpenAI sends none, LiteLLM one with an empty `delta`.
pub(super) fn is_usage_only(data: &[u8]) -> bool {
    let event = Json::of(data);
    let says_nothing = |choice: Json<'_>| {
        choice.members().all(|(name, value)| match name {
            b"index" => true,
            b"delta" => value.is_empty_object(),
            b"text" => value.quoted() == Some(b""),
            _ => false,
        })
    };
    let is_count = |(name, value): (&[u8], Json<'_>)| {
        Figure::of(name).is_some() && parse_count(value.quoted().unwrap_or(value.raw())).is_some()
    };
    let choices = event.member("choices");
    event.member("usage").members().any(is_count)
        && !event.member("error").is_there()
        && choices.raw().first() == Some(&b'[')
        && choices.elements().all(says_nothing)
}
