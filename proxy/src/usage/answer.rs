//! Takes note of what stands at the places that matter of answers and of stream events, as they are read.
//!
//! Each field counts for itself, so that one of an unexpected type costs nothing but itself. What depends on the type of an
//! event waits until the event has ended, because the type may come last.

use platform_core::{money::NanoDollars, route::Route, untrusted::JournalText};

use super::{
    Count, Heard, Reading, Stage,
    counts::{Counts, Figure, count},
    json::Json,
    place::{Place, is_no_text},
    scan::{Bracket, Inside, Span, Text, Visit, Wants},
};

pub(super) type Tap<'t> = Option<&'t mut dyn FnMut(Heard<'_>)>;

/// Most bytes of one string that are kept, so that watchers see it in one piece.
const MAX_HEARD: usize = 64 << 10;
/// Most of a name, a type or a number that is looked at.
const MAX_WORD: usize = 1 << 10;

/// State of the event or answer that is being read.
#[derive(Debug, Default)]
pub(super) struct Event {
    kind: Kind,
    /// Figures of the usage that is being read.
    counts: Counts,
    /// Set once it has reported usage.
    has_counted: bool,
    /// OpenAI responses: how it stands once it has ended, and why it is incomplete.
    status: Option<JournalText>,
    reason: Option<JournalText>,
    /// Set if the part that is being read is a tool.
    is_tool: bool,
    part_name: Option<String>,
    /// Tool that begins with this event, or is named again.
    item: Option<String>,
    /// OpenAI responses: text that came before the type of its event.
    delta: Option<String>,
    said: Said,
}

/// Content of an event that another like it would not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Said {
    #[default]
    Nothing,
    /// A single text, at this place in the piece that was read.
    Text(Span),
    /// More than that.
    More,
}

impl Said {
    fn add(&mut self, place: Option<Span>) {
        *self = match (*self, place) {
            (Self::Nothing, Some(place)) => Self::Text(place),
            _ => Self::More,
        };
    }
}

impl Event {
    /// Bytes that are kept.
    #[cfg(any(test, feature = "parts"))]
    pub(super) fn kept(&self) -> usize {
        [&self.part_name, &self.item, &self.delta].into_iter().flatten().map(String::len).sum()
    }
}

/// The types of events that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kind {
    /// No type has come.
    #[default]
    Unknown,
    Error,
    TextDelta,
    ItemDone,
    /// The last one of a response, however that ended.
    ResponseEnded,
    ResponseFailed,
    MessageStop,
    Other,
}

impl Kind {
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

/// Reads for a [`Reading`].
pub(super) struct Reader<'a, 't> {
    pub(super) route: Route,
    /// Place of the outermost object.
    pub(super) root: Place,
    pub(super) event: &'a mut Event,
    pub(super) reading: &'a mut Reading,
    pub(super) tap: &'a mut Tap<'t>,
}

impl Visit for Reader<'_, '_> {
    type Place = Place;
    const SKIPPED: Place = Place::Skipped;

    fn root(&self) -> Place {
        self.root
    }

    fn member(&self, place: Place, name: &[u8]) -> Place {
        place.member(name)
    }

    fn element(&self, place: Place) -> Place {
        place.element()
    }

    fn wants(&self, place: Place) -> Wants {
        match place {
            Place::Skipped | Place::Said | Place::ContentPart => Wants::Beginning(0),
            Place::Text | Place::Content if self.tap.is_some() => Wants::All(MAX_HEARD),
            Place::Delta if self.tap.is_some() => match self.event.kind {
                Kind::TextDelta => Wants::All(MAX_HEARD),
                _ => Wants::Beginning(MAX_HEARD),
            },
            Place::Text | Place::Content | Place::Delta => Wants::Beginning(0),
            _ => Wants::Beginning(MAX_WORD),
        }
    }

    fn begins(&mut self, place: Place, bracket: Bracket) -> Inside {
        if matches!(
            place,
            Place::Error | Place::Usage | Place::FirstUsage | Place::Part | Place::Item | Place::Block
        ) {
            self.event.said = Said::More;
        }
        match place {
            Place::Error => self.reading.failed = true,
            Place::Usage | Place::FirstUsage => self.event.counts = Counts::default(),
            Place::Part | Place::Item | Place::Block => {
                (self.event.is_tool, self.event.part_name) = (false, None);
            }
            _ => {}
        }
        place.inside(bracket)
    }

    fn ends(&mut self, place: Place) {
        match place {
            Place::Usage => self.note_usage(Count::Final),
            Place::FirstUsage => self.note_usage(Count::Preliminary),
            Place::Part | Place::Block => {
                if let Some(name) = self.event.part_name.take().filter(|_| self.event.is_tool) {
                    self.reading.said += if place == Place::Part { name.len() as u64 } else { 0 };
                    self.note_tool(&name);
                }
            }
            Place::Item => self.event.item = self.event.part_name.take().filter(|_| self.event.is_tool),
            _ => {}
        }
    }

    fn piece(&mut self, _place: Place, text: Text<'_>) {
        self.tell(text);
    }

    fn string(&mut self, place: Place, text: Text<'_>) {
        match place {
            Place::Text | Place::Content => {
                self.say(text);
                self.tell(text);
            }
            Place::Said | Place::ContentPart => self.say(text),
            Place::Delta => {
                self.say(text);
                self.note_delta(text);
            }
            Place::Model if self.reading.model.is_some() => {}
            Place::Error => self.reading.failed = true,
            Place::Figure(figure) => self.note_figure(figure, text.written()),
            Place::Cost => self.note_cost(text.written()),
            _ => {
                if let Some(word) = text.decoded() {
                    self.note_word(place, &word);
                }
            }
        }
    }

    fn scalar(&mut self, place: Place, raw: &[u8]) {
        match place {
            // A null is no error.
            Place::Error => self.reading.failed |= raw != b"null",
            Place::Figure(figure) => self.note_figure(figure, raw),
            Place::Cost => self.note_cost(raw),
            _ => {}
        }
    }

    fn is_no_text(&self, name: &[u8]) -> bool {
        is_no_text(name)
    }

    fn measured(&mut self, bytes: u64) {
        self.event.said = Said::More;
        self.reading.said += bytes;
    }
}

impl Reader<'_, '_> {
    /// Returns the position of the text of an event that says nothing else, and ends nothing.
    pub(super) fn only_text(&self) -> Option<Span> {
        match (self.event.said, self.event.kind) {
            (Said::Text(place), Kind::Unknown | Kind::TextDelta | Kind::Other) => Some(place),
            _ => None,
        }
    }

    fn say(&mut self, text: Text<'_>) {
        self.event.said.add(text.place);
        self.reading.said += text.bytes;
    }

    /// The event or answer has come to its end, or as far as it ever will.
    pub(super) fn end(&mut self) {
        let event = std::mem::take(self.event);
        if let Some(text) = event.delta.filter(|_| event.kind == Kind::TextDelta) {
            self.hear(Heard::Text(&text));
        }
        // A tool is named where its part begins; at its end it is named again.
        if let Some(name) = event.item.filter(|_| event.kind != Kind::ItemDone) {
            self.note_tool(&name);
        }
        self.reading.failed |=
            self.root == Place::Event && matches!(event.kind, Kind::Error | Kind::ResponseFailed);
        let is_last = match self.route {
            Route::Responses => matches!(event.kind, Kind::ResponseEnded | Kind::ResponseFailed),
            Route::Messages => event.kind == Kind::MessageStop,
            _ => false,
        };
        if is_last {
            self.reading.stage = Stage::Ended;
        }
        if let Some(status) = event.status {
            let is_incomplete = status.as_str() == "incomplete";
            let reason = event.reason.filter(|_| is_incomplete).unwrap_or(status);
            self.reading.finish.get_or_insert(reason);
        }
        if event.has_counted {
            // Usage that stands before the text of its own event counts that text.
            self.reading.counted_at = self.reading.said;
        }
    }

    fn note_word(&mut self, place: Place, word: &str) {
        match place {
            Place::Kind => self.event.kind = Kind::of(word),
            Place::Model if self.reading.model.is_none() => {
                self.reading.model = Some(JournalText::of(word));
            }
            Place::Status if !matches!(word, "in_progress" | "queued") => {
                self.event.said = Said::More;
                self.event.status = Some(JournalText::of(word));
            }
            Place::Reason => self.event.reason = Some(JournalText::of(word)),
            Place::Finish | Place::ChoiceFinish if !word.is_empty() => {
                self.reading.stage = self.reading.stage.max(Stage::Finished);
                self.reading.finish.get_or_insert_with(|| JournalText::of(word));
            }
            Place::ToolName if !word.is_empty() => {
                self.reading.said += word.len() as u64;
                self.note_tool(word);
            }
            Place::PartKind => {
                self.event.is_tool =
                    matches!(word, "tool_use" | "server_tool_use" | "function_call" | "custom_tool_call");
            }
            Place::PartName if !word.is_empty() => self.event.part_name = Some(word.to_owned()),
            _ => {}
        }
    }

    fn note_figure(&mut self, figure: Figure, number: &[u8]) {
        self.event.said = Said::More;
        self.event.counts.note(figure, count(number));
    }

    fn note_cost(&mut self, number: &[u8]) {
        self.event.said = Said::More;
        let told = std::str::from_utf8(number).ok().and_then(NanoDollars::parse_dollars);
        self.reading.cost = told.or(self.reading.cost);
    }

    fn note_usage(&mut self, count: Count) {
        let later = std::mem::take(&mut self.event.counts);
        if !later.is_usage() {
            return;
        }
        self.reading.counts.get_or_insert_default().replace(&later);
        self.reading.count = self.reading.count.max(count);
        if count == Count::Final {
            self.event.has_counted = true;
            self.reading.counted_at = self.reading.said;
        }
    }

    fn note_tool(&mut self, name: &str) {
        self.event.said = Said::More;
        self.reading.tool(name);
        self.hear(Heard::Tool(name));
    }

    fn note_delta(&mut self, text: Text<'_>) {
        match self.event.kind {
            Kind::TextDelta => self.tell(text),
            Kind::Unknown if self.tap.is_some() => self.event.delta = text.decoded().map(Into::into),
            _ => {}
        }
    }

    fn tell(&mut self, text: Text<'_>) {
        if self.tap.is_some()
            && let Some(text) = text.decoded().filter(|text| !text.is_empty())
        {
            self.hear(Heard::Text(&text));
        }
    }

    fn hear(&mut self, heard: Heard<'_>) {
        if let Some(tell) = self.tap {
            tell(heard);
        }
    }
}

/// Returns whether the event `data` of a chat or completion stream reports nothing but usage: a count, no
/// error, and choices, if any, that say nothing. OpenAI sends none, LiteLLM one whose `delta` is empty.
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
        Figure::of(name).is_some() && count(value.quoted().unwrap_or(value.raw())).is_some()
    };
    let choices = event.member("choices");
    event.member("usage").members().any(is_count)
        && !event.member("error").is_there()
        && choices.raw().first() == Some(&b'[')
        && choices.elements().all(says_nothing)
}
