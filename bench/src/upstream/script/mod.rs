//! Parses the model name into a script of the upstream's behaviour.
//!
//! The name carries the script because every program between a test and this upstream passes a name unchanged. So tests
//! that run at once share no state. Names are parsed only here; `staging` turns a script into bytes on the wire.

use std::{str::FromStr, time::Duration};

use http::StatusCode;

/// Largest count of `words<N>`: an answer is built before it is sent.
const MOST_WORDS: usize = 100_000;
/// Largest count of `big<N>`, in bytes.
const MOST_BYTES: usize = 64 << 20;
const LONGEST_PAUSE: Duration = Duration::from_secs(3600);

/// A word of the language that model names are written in.
#[derive(Debug)]
#[non_exhaustive]
pub struct Directive {
    /// Syntax of the directive.
    pub form: &'static str,
    /// A model name that uses it.
    pub example: &'static str,
    /// Effect of the directive.
    pub meaning: &'static str,
}

const fn directive(form: &'static str, example: &'static str, meaning: &'static str) -> Directive {
    Directive { form, example, meaning }
}

/// Every directive. `GET /v1/models` and the message about an unknown one are made of this list.
pub const DIRECTIVES: [Directive; 18] = [
    directive("words<N>", "fake-words50", "answers with N words"),
    directive("big<N>", "fake-big200k", "answers with one piece of N bytes; k and m multiply by 1024"),
    directive("echo", "fake-echo", "answers with the text of the last user message"),
    directive("tools", "fake-tools", "calls the tool `get_weather`, its arguments in fragments"),
    directive(
        "steps",
        "fake-steps",
        "calls the tools that a user message lists, one an answer, then says something",
    ),
    directive("firstbyte<N>ms", "fake-firstbyte500ms", "waits before the response headers"),
    directive("gap<N>ms", "fake-gap100ms", "waits before each event, or before the whole body"),
    directive("status<N>", "fake-status429", "answers with this status, 200 to 599, and an error object"),
    directive("toolong", "fake-toolong", "answers that the request is longer than its context"),
    directive("hang", "fake-hang", "never answers"),
    directive("stall<N>", "fake-stall3", "sends nothing after N content events, keeps the connection"),
    directive("cut<N>", "fake-cut3", "resets the connection after N content events; 0: before the headers"),
    directive("cutat<N>", "fake-cutat500", "resets the connection after N bytes of the body"),
    directive("errmid<N>", "fake-errmid3", "after N content events an error event, then a clean end"),
    directive(
        "usage<I>x<O>",
        "fake-usage300x6000",
        "reports I prompt tokens and O completion tokens, whatever was said",
    ),
    directive("nousage", "fake-nousage", "reports no usage"),
    directive("cost", "fake-cost", "reports a price the way LiteLLM does"),
    directive(
        "free",
        "fake-free",
        "reports a price of nothing, as LiteLLM does of models that it does not know",
    ),
];

/// Script that a model name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Content of the answer.
    pub content: Content,
    /// End of the answer.
    pub fate: Fate,
    /// Pause before the response headers.
    pub first_byte: Option<Duration>,
    /// Pause before each event.
    pub gap: Option<Duration>,
    /// If true, the answer reports usage.
    pub tells_usage: bool,
    /// The usage that is reported, if the script fixes it.
    pub figures: Option<Figures>,
    /// Price that is reported.
    pub cost: Cost,
}

/// Token counts that a script fixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Tokens of the prompt, cached ones included.
    pub prompt: usize,
    /// Tokens of the answer, reasoning included.
    pub completion: usize,
}

/// Report of the price in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// The answer has no price.
    Untold,
    /// The answer reports a price of zero.
    Free,
    /// The answer reports the price of its tokens.
    OfTokens,
}

/// Content of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The fixed sentence.
    Sentence,
    /// As many words as the number.
    Words(usize),
    /// A single piece of as many bytes as the number.
    Filler(usize),
    /// The last user message.
    Echo,
    /// A tool call instead of text.
    ToolCall,
    /// The tool calls that a user message lists, one after the other, then text.
    Steps,
}

/// End of an answer. The counts are of content events: those that carry a word of the answer or a fragment of its tool
/// call. With fewer events than the count, the answer ends after the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The answer is complete.
    Complete,
    /// The answer has this status and an error object, before any content.
    Status(StatusCode),
    /// The answer is the error of a model with too small a context, before any content.
    TooLong,
    /// The answer never comes, not even the response headers.
    Hang,
    /// The answer stalls for ever after this many content events.
    Stall(usize),
    /// The connection is reset after this many content events; with a count of 0, before the headers.
    Cut(usize),
    /// The connection is reset after this many bytes of the body.
    CutAt(usize),
    /// The answer has an error event after this many content events.
    ErrorMid(usize),
}

/// Reason why a model name is not a script.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The name does not start with `fake`.
    #[error("The model `{0}` does not exist: the names of this upstream start with `fake`")]
    UnknownModel(String),
    /// A word of the name is not a directive.
    #[error("unknown directive `{0}`; known are: {known}", known = forms())]
    UnknownDirective(String),
    /// A word of the name has an invalid value.
    #[error("the value of `{directive}` does not fit `{form}`")]
    BadValue {
        /// The word as it was given.
        directive: String,
        /// Syntax of the directive.
        form: &'static str,
    },
    /// The name repeats a directive, or has two that exclude each other.
    #[error("`{0}` contradicts an earlier directive")]
    Contradiction(String),
}

fn forms() -> String {
    DIRECTIVES.map(|directive| directive.form).join(", ")
}

impl Default for Script {
    fn default() -> Self {
        Self {
            content: Content::Sentence,
            fate: Fate::Complete,
            first_byte: None,
            gap: None,
            tells_usage: true,
            figures: None,
            cost: Cost::Untold,
        }
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(model: &str) -> Result<Self, ScriptError> {
        let mut words = model.split('-');
        if words.next() != Some("fake") {
            return Err(ScriptError::UnknownModel(model.to_owned()));
        }
        let mut script = Self::default();
        for word in words {
            script.follow(word)?;
        }
        Ok(script)
    }
}

impl Script {
    fn follow(&mut self, word: &str) -> Result<(), ScriptError> {
        let (name, value) = word.split_at(word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len()));
        let Some(directive) = DIRECTIVES.iter().find(|directive| stem(directive.form) == name) else {
            return Err(ScriptError::UnknownDirective(word.to_owned()));
        };
        let bad = || ScriptError::BadValue { directive: word.to_owned(), form: directive.form };
        if value.is_empty() != (directive.form == name) {
            return Err(bad());
        }
        let first_time = match name {
            "words" => self.say(Content::Words(count(value).filter(|n| *n <= MOST_WORDS).ok_or_else(bad)?)),
            "big" => self.say(Content::Filler(bytes(value).filter(|n| *n <= MOST_BYTES).ok_or_else(bad)?)),
            "echo" => self.say(Content::Echo),
            "tools" => self.say(Content::ToolCall),
            "steps" => self.say(Content::Steps),
            "firstbyte" => self.first_byte.replace(pause(value).ok_or_else(bad)?).is_none(),
            "gap" => self.gap.replace(pause(value).ok_or_else(bad)?).is_none(),
            "status" => self.end(Fate::Status(status(value).ok_or_else(bad)?)),
            "toolong" => self.end(Fate::TooLong),
            "hang" => self.end(Fate::Hang),
            "stall" => self.end(Fate::Stall(count(value).ok_or_else(bad)?)),
            "cut" => self.end(Fate::Cut(count(value).ok_or_else(bad)?)),
            "cutat" => self.end(Fate::CutAt(bytes(value).ok_or_else(bad)?)),
            "errmid" => self.end(Fate::ErrorMid(count(value).ok_or_else(bad)?)),
            "usage" => self.figures.replace(figures(value).ok_or_else(bad)?).is_none(),
            "nousage" => std::mem::replace(&mut self.tells_usage, false),
            "cost" => self.cost(Cost::OfTokens),
            "free" => self.cost(Cost::Free),
            _ => return Err(ScriptError::UnknownDirective(word.to_owned())),
        };
        if first_time { Ok(()) } else { Err(ScriptError::Contradiction(word.to_owned())) }
    }

    fn say(&mut self, content: Content) -> bool {
        std::mem::replace(&mut self.content, content) == Content::Sentence
    }

    fn cost(&mut self, cost: Cost) -> bool {
        std::mem::replace(&mut self.cost, cost) == Cost::Untold
    }

    fn end(&mut self, fate: Fate) -> bool {
        std::mem::replace(&mut self.fate, fate) == Fate::Complete
    }
}

/// Returns the name in a form: `gap` of `gap<N>ms`.
fn stem(form: &str) -> &str {
    form.split('<').next().unwrap_or(form)
}

fn count(value: &str) -> Option<usize> {
    value.parse().ok()
}

fn figures(value: &str) -> Option<Figures> {
    let (prompt, completion) = value.split_once('x')?;
    Some(Figures { prompt: count(prompt)?, completion: count(completion)? })
}

fn bytes(value: &str) -> Option<usize> {
    match value.strip_suffix('k') {
        Some(kibibytes) => count(kibibytes)?.checked_mul(1 << 10),
        None => match value.strip_suffix('m') {
            Some(mebibytes) => count(mebibytes)?.checked_mul(1 << 20),
            None => count(value),
        },
    }
}

fn pause(value: &str) -> Option<Duration> {
    let milliseconds = value.strip_suffix("ms")?.parse().ok()?;
    Some(Duration::from_millis(milliseconds)).filter(|pause| *pause <= LONGEST_PAUSE)
}

/// Parses a status. Interim (1xx) statuses are refused: they are not the answer to a request.
fn status(value: &str) -> Option<StatusCode> {
    let code = value.parse().ok().filter(|code| (200..=599).contains(code))?;
    StatusCode::from_u16(code).ok()
}

#[cfg(test)]
mod tests;
