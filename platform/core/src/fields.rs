//! Lists the fields of a journal line, for programs that read the journal without this library. `journal.schema.json`
//! and `journal.md` in `platform/config` are generated from this list. A test compares it with what [`JournalLine`]
//! really writes.
//!
//! [`JournalLine`]: crate::record::JournalLine

use crate::{
    record::{CostSource, Identity, Kind, Outcome, Tap, Timeout, TokensSource, ToolOutcome},
    refusal::Refusal,
    route::Route,
};

/// Description of one field.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Type of its value.
    pub holds: Holds,
    /// Rule for a field without a value.
    pub absence: Absence,
    /// Meaning of the field.
    pub doc: &'static str,
}

/// Rule for a field that has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absence {
    /// The field always has a value.
    Never,
    /// The field is null if it has no value.
    Null,
    /// The field is never null, and is left out if it has no value.
    LeftOut,
}

/// Type of a field's value.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    /// A whole number, not negative.
    Count,
    /// A text.
    Text,
    /// A text chosen by an agent or an upstream: of `[A-Za-z0-9_./:@-]{1,128}`, or `<length:hash>`.
    Untrusted,
    /// A list of such texts.
    ManyUntrusted,
    /// True or false.
    Bool,
    /// A word of a closed list.
    Word(fn() -> Vec<&'static str>),
    /// An object with its own fields.
    Fields(&'static [Field]),
    /// A list of objects with their own fields.
    Many(&'static [Field]),
}

const fn field(name: &'static str, holds: Holds, doc: &'static str) -> Field {
    Field { name, holds, absence: Absence::Never, doc }
}

const fn or_null(name: &'static str, holds: Holds, doc: &'static str) -> Field {
    Field { name, holds, absence: Absence::Null, doc }
}

/// All fields, in the order in which they are written.
pub const FIELDS: [Field; 38] = [
    field(
        "v",
        Holds::Count,
        "Version of the schema: 5. Lines of version 4 have no `seen`, no `output_rate`, and no corrections; of version 3 also no `unconfirmed` among the sources of costs. No installation has earlier ones.",
    ),
    field("seq", Holds::Count, "Place in the journal, from 1, without gaps."),
    field("ts", Holds::Text, "When the call began: RFC 3339, UTC, microseconds."),
    field("run_id", Holds::Text, "Run that made the call; `unattributed` for calls of no known run."),
    field("attempt", Holds::Count, "Attempt of that run."),
    field("account", Holds::Text, "Account that pays."),
    or_null("user", Holds::Text, "User on whose behalf the run was started."),
    field("graph", Holds::Text, "Agent of the run."),
    field(
        "identity",
        Holds::Word(identities),
        "Source of the identity; `none`: there was none, and the call was refused.",
    ),
    field("route", Holds::Word(routes), "Route of the model API, or of host tools."),
    or_null("model_asked", Holds::Untrusted, "Model that the agent requested."),
    or_null("model_answered", Holds::Untrusted, "Model the upstream says has answered."),
    or_null(
        "finish_reason",
        Holds::Untrusted,
        "Why the model stopped, in the upstream's word; of several answers to one call, the first to end.",
    ),
    field("stream", Holds::Bool, "Whether a stream was requested."),
    field(
        "status",
        Holds::Count,
        "HTTP status: the upstream's real one, or Sluicegate's own when it answered itself; 0 if there was none.",
    ),
    field(
        "outcome",
        Holds::Word(outcomes),
        "Outcome of the call. `frozen`: an operator stopped it, by a freeze (refusal `frozen`) or by revoking the token it came by (`token_revoked`).",
    ),
    or_null(
        "refusal",
        Holds::Word(refusals),
        "Why Sluicegate answered itself. `context_overflow` also where the upstream's own words were passed on.",
    ),
    or_null("rule", Holds::Untrusted, "Rule that refused the call."),
    or_null("timeout", Holds::Word(timeouts), "Timeout that passed."),
    field(
        "request_bytes",
        Holds::Count,
        "Bytes of request body that arrived, or of its plain form if it was compressed; summed over `calls`.",
    ),
    field("response_bytes", Holds::Count, "Bytes of response body that were passed on; summed over `calls`."),
    or_null(
        "ttfb_us",
        Holds::Count,
        "Microseconds from the call's beginning to the first byte of the upstream's answer.",
    ),
    field(
        "duration_us",
        Holds::Count,
        "Microseconds from the call's beginning to its end. Of an `interrupted` call that was found after the proxy died: to its mark. Of several calls: from the end of the first to that of the last.",
    ),
    field("tokens", Holds::Fields(&TOKENS), "Tokens used."),
    field(
        "tokens_source",
        Holds::Word(tokens_sources),
        "Accuracy of the token counts: `exact`, counted by the upstream; `partial`, some are counted and the rest is estimated; `estimated`, none is counted; `none`, no model worked.",
    ),
    or_null("cost_nanodollars", Holds::Count, "Cost, in billionths of a dollar."),
    field("cost_source", Holds::Word(cost_sources), "Source of the cost."),
    field(
        "litellm_call_id",
        Holds::Text,
        "Id under which the upstream knows the call, assigned by Sluicegate; of several calls, the first one's.",
    ),
    field("tools", Holds::ManyUntrusted, "Names of the tools the answer called."),
    field(
        "kind",
        Holds::Word(kinds),
        "Kind of the call. `correction`: no call, but new figures for an earlier line, which the upstream's ledger gave.",
    ),
    field(
        "calls",
        Holds::Count,
        "Number of calls in this record: more than one only for a sum of calls of which nothing was sent; none for a correction.",
    ),
    field("tap", Holds::Word(taps), "Whether the answer could be watched."),
    Field {
        name: "tool",
        holds: Holds::Fields(&TOOL),
        absence: Absence::LeftOut,
        doc: "Call of a host tool; only with the kind `tool`, and only once the name of a tool was read.",
    },
    Field {
        name: "seen",
        holds: Holds::Fields(&FIGURES),
        absence: Absence::LeftOut,
        doc: "What was seen of a call whose tokens are `partial` or `estimated`: no correction goes below it. Left out if nothing was, as of a call that was found after the proxy died.",
    },
    Field {
        name: "output_rate",
        holds: Holds::Count,
        absence: Absence::LeftOut,
        doc: "Tokens a second of each answer, if the upstream has counted more than 200 of them a second. Calls of the model that are cut in the next day are booked by it.",
    },
    Field {
        name: "correction",
        holds: Holds::Fields(&CORRECTION),
        absence: Absence::LeftOut,
        doc: "Correction of an earlier line; only with the kind `correction`. The other fields say whose call it was, and how it ended.",
    },
    field(
        "prev",
        Holds::Text,
        "SHA-256 of the line before, without its line feed, in lower-case hexadecimal; zeros before the first line.",
    ),
    Field {
        name: "lost",
        holds: Holds::Many(&LOST),
        absence: Absence::LeftOut,
        doc: "Lines that the proxy found to be gone when it started; in the first line that it wrote after that.",
    },
];

const TOOL: [Field; 4] = [
    field("name", Holds::Untrusted, "Name of the tool."),
    field(
        "outcome",
        Holds::Word(tool_outcomes),
        "Outcome of the call: `done`; `failed`, the tool failed or refused its arguments; `denied`, nothing ran; `unknown`, it began and may have had its effect.",
    ),
    Field {
        name: "connection",
        holds: Holds::Untrusted,
        absence: Absence::LeftOut,
        doc: "Id of the account's connection whose credential the tool used; left out if it used none of them.",
    },
    Field {
        name: "args_sha256",
        holds: Holds::Untrusted,
        absence: Absence::LeftOut,
        doc: "SHA-256 of the arguments as the agent wrote them, in lower-case hexadecimal; left out if there were none.",
    },
];

const CORRECTION: [Field; 3] = [
    field("line", Holds::Count, "Number of the line with the call's record."),
    field(
        "before",
        Holds::Fields(&FIGURES),
        "What counted under limits until then, with the fields of `seen`.",
    ),
    field("after", Holds::Fields(&FIGURES), "What counts from then on, with the same fields."),
];

const FIGURES: [Field; 3] = [
    field("input", Holds::Count, "Tokens of the prompt."),
    field("output", Holds::Count, "Tokens of the answer."),
    field("cost_nanodollars", Holds::Count, "Cost, in billionths of a dollar; 0 if it is unknown."),
];

const LOST: [Field; 2] = [
    field("from", Holds::Count, "The first of them."),
    field(
        "to",
        Holds::Count,
        "The last. At the end of a journal the numbers between may never have been used.",
    ),
];

const TOKENS: [Field; 6] = [
    field("input", Holds::Count, "Tokens of the prompt, cached ones included."),
    field("output", Holds::Count, "Tokens of the answer, reasoning included."),
    field("cached", Holds::Count, "Those of the prompt that were read from a cache."),
    field("cache_written", Holds::Count, "Those of the prompt that were written to a cache."),
    field("cache_written_1h", Holds::Count, "Those of `cache_written` that the cache keeps for an hour."),
    field("reasoning", Holds::Count, "Those of the answer that were spent on reasoning."),
];

fn routes() -> Vec<&'static str> {
    Route::ALL.map(Route::word).to_vec()
}

fn outcomes() -> Vec<&'static str> {
    Outcome::ALL.map(Outcome::word).to_vec()
}

fn refusals() -> Vec<&'static str> {
    Refusal::ALL.map(Refusal::code).to_vec()
}

fn timeouts() -> Vec<&'static str> {
    Timeout::ALL.map(Timeout::word).to_vec()
}

fn tokens_sources() -> Vec<&'static str> {
    TokensSource::ALL.map(TokensSource::word).to_vec()
}

fn cost_sources() -> Vec<&'static str> {
    CostSource::ALL.map(CostSource::word).to_vec()
}

fn identities() -> Vec<&'static str> {
    Identity::ALL.map(Identity::word).to_vec()
}

fn tool_outcomes() -> Vec<&'static str> {
    ToolOutcome::ALL.map(ToolOutcome::word).to_vec()
}

fn kinds() -> Vec<&'static str> {
    Kind::ALL.map(Kind::word).to_vec()
}

const TAPS: [Tap; 2] = [Tap::Off, Tap::Text];

fn taps() -> Vec<&'static str> {
    let word = |tap| match tap {
        Tap::Off => "off",
        Tap::Text => "text",
    };
    TAPS.map(word).to_vec()
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    fn words<T: Serialize>(all: &[T]) -> Vec<String> {
        all.iter().map(|value| serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn field_words_are_the_serialized_ones() {
        assert_eq!(identities(), words(&Identity::ALL));
        assert_eq!(taps(), words(&TAPS));
        assert_eq!(refusals(), words(&Refusal::ALL));
        assert_eq!(routes(), words(&Route::ALL));
    }
}
