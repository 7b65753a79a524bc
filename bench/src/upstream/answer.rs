//! Builds the content and usage of an answer, before an API gives it a shape.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    api::Api,
    ask::Ask,
    ledger::{Call, Generation, Reported},
    script::{Content, Cost, Fate, Figures, Script},
    steps::{self, Step},
    usage::{Price, Usage},
};

/// Text of ten words, so that counts in tests are easy.
const SENTENCE: &str = "Hello from the scripted upstream, it is a lovely day.";

/// Tool that `fake-tools` calls.
const TOOL: &str = "get_weather";
/// Arguments of the tool, split as a provider would split them: not at the borders of JSON's own tokens.
const FRAGMENTS: [&str; 5] = ["{\"ci", "ty\":\"Par", "is\",", "\"unit\":\"cel", "sius\"}"];

/// Characters per fragment of arguments that are not fixed.
const FRAGMENT: usize = 16;

/// An answer. Its parts are sent one per event, or joined if nothing is streamed.
pub(super) struct Answer {
    pub(super) seq: u64,
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) says: Says,
    /// Name of the tool, if the answer calls one.
    pub(super) tool: Cow<'static, str>,
    pub(super) usage: Option<Usage>,
    /// Price, reported even without usage.
    pub(super) price: Option<Price>,
    /// Fields of the request that the answer repeats.
    pub(super) echoes: Map<String, Value>,
}

pub(super) enum Says {
    Text(Vec<Cow<'static, str>>),
    ToolCall(Vec<Cow<'static, str>>),
}

impl Answer {
    /// Creates the answer to a request by its script.
    pub(super) fn to(ask: &Ask, script: &Script, call: &Call) -> Self {
        let mut tool = Cow::from(TOOL);
        let says = match script.content {
            Content::Sentence => Says::Text(words(SENTENCE)),
            Content::Words(count) => Says::Text(many_words(count)),
            Content::Filler(bytes) => Says::Text(vec!["x".repeat(bytes).into()]),
            Content::Echo => Says::Text(words(&ask.last_user_text())),
            Content::ToolCall => Says::ToolCall(FRAGMENTS.map(Cow::from).to_vec()),
            Content::Steps => match steps::next(ask) {
                Step::Call { tool: wanted, arguments } => {
                    tool = wanted.into();
                    Says::ToolCall(fragments(&arguments))
                }
                Step::Say(text) => Says::Text(words(text.as_deref().unwrap_or(SENTENCE))),
            },
        };
        let mut usage = match script.figures {
            Some(Figures { prompt, completion }) => Usage { prompt, completion, price: None },
            None => Usage::of(ask.prompt_bytes(), says.parts().len()),
        };
        let price = match script.cost {
            Cost::Untold => None,
            Cost::Free => Some(Price::NOTHING),
            Cost::OfTokens => Some(usage.price()),
        };
        usage.price = price;
        Self {
            seq: call.seq(),
            created: call.unix_seconds(),
            model: ask.model.clone(),
            says,
            tool,
            usage: script.tells_usage.then_some(usage),
            price,
            echoes: if ask.api == Api::Responses { ask.echoes() } else { Map::new() },
        }
    }

    /// Returns the usage in the answer, if the answer is sent to its end.
    pub(super) fn reported(&self, ask: &Ask, script: &Script) -> Option<Reported> {
        let has_usage_field = match ask.api {
            Api::Chat | Api::Completions => !ask.is_streamed() || ask.wants_usage_chunk(),
            Api::Responses | Api::Compact | Api::Messages | Api::Embeddings => true,
        };
        let breaks_off = matches!(script.fate, Fate::ErrorMid(_));
        self.usage.filter(|_| has_usage_field && !breaks_off).map(|usage| usage.reported(ask.api))
    }

    /// Returns what is generated, if the script completes it.
    pub(super) fn generation(&self, ask: &Ask, script: &Script) -> Option<Generation> {
        let usage = self.usage.filter(|_| script.fate == Fate::Complete)?.reported(ask.api);
        Some(if ask.is_streamed() { Generation::Streamed(usage) } else { Generation::InOnePiece(usage) })
    }

    pub(super) fn id(&self, prefix: &str) -> String {
        format!("{prefix}fake{}", self.seq)
    }
}

impl Says {
    pub(super) fn parts(&self) -> &[Cow<'static, str>] {
        match self {
            Self::Text(parts) | Self::ToolCall(parts) => parts,
        }
    }

    /// Returns all parts joined.
    pub(super) fn whole(&self) -> String {
        self.parts().concat()
    }
}

/// Splits text into pieces of a few characters.
fn fragments(text: &str) -> Vec<Cow<'static, str>> {
    let characters: Vec<_> = text.chars().collect();
    characters.chunks(FRAGMENT).map(|piece| piece.iter().collect::<String>().into()).collect()
}

/// Splits text before the space in front of each word, as tokenizers do: joined again it is the same text.
fn words(text: &str) -> Vec<Cow<'static, str>> {
    let end_of_last = text.trim_end().len();
    let (mut words, mut start, mut in_word) = (Vec::new(), 0, false);
    for (at, character) in text.char_indices() {
        if in_word && character.is_whitespace() && at < end_of_last {
            words.push(text[start..at].to_owned().into());
            start = at;
        }
        in_word = !character.is_whitespace();
    }
    if start < text.len() {
        words.push(text[start..].to_owned().into());
    }
    words
}

/// Returns `count` words, those of the sentence over and over.
fn many_words(count: usize) -> Vec<Cow<'static, str>> {
    let spaced = SENTENCE.split(' ').cycle().take(count).enumerate();
    spaced.map(|(at, word)| if at == 0 { word.into() } else { format!(" {word}").into() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_joined_are_the_text() {
        let table = [
            ("", vec![]),
            ("one", vec!["one"]),
            ("one two", vec!["one", " two"]),
            ("  one\n\ntwo \u{a0}drei ", vec!["  one", "\n\ntwo", " \u{a0}drei "]),
            (" ", vec![" "]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), expected);
        }
    }

    #[test]
    fn words_are_counted_exactly() {
        assert_eq!(words(SENTENCE).len(), 10);
        for count in [0, 1, 10, 11, 50] {
            let text = many_words(count).concat();
            assert_eq!(text.split_whitespace().count(), count, "{text}");
        }
    }
}
