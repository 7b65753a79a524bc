//! Describes why a body is refused: the fault, its place, and how to fix it.
//!
//! The messages name what the agent wrote, bounded and harmless, but they are for the agent alone. OpenClaw sorts a 400
//! by the words and even the digits in its message. Most of its categories mean retries, or a provider that is locked
//! for every tenant. Where several agents share a listener, they get only the fixed words of the table of refusals.

use std::fmt;

use platform_core::capability::Capability;

/// A body that may not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// Fault of the body.
    pub(crate) reason: Reason,
    /// The top-level field in which it was found, if it was in one.
    pub(crate) field: Option<Label>,
    /// The byte of the body at which it was noticed.
    pub(crate) at: usize,
}

/// Fault of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The body is not a single JSON object.
    Syntax(&'static str),
    /// A name occurs twice in one object: readers differ in which one they take.
    Duplicate(Label),
    /// An object has more members than any the API knows.
    Crowded,
    /// A field that is not on the route's list.
    UnknownField(Label),
    /// A value of another type than the API has there.
    WrongType {
        /// The member.
        what: Label,
        /// Value or type that would be right.
        expected: &'static str,
    },
    /// Something possible that this run was not granted.
    NotGranted {
        /// The member or type.
        what: Label,
        /// Capability that would allow it.
        capability: Capability,
    },
    /// No model is named.
    ModelMissing,
    /// The model's name is not a single plain name.
    ModelMalformed,
    /// The model is not among the run's.
    ModelNotGranted(Label),
    /// A tool is offered that is not among the run's.
    ToolNotGranted(Label),
    /// A tool without a name, of a run that may offer some only.
    ToolUnnamed,
    /// The route takes no body that could be checked.
    NoRoute,
}

/// Name of an item that is nothing but an id, in messages.
pub(crate) const BARE_ID: &str = "an-item-without-type-and-role";

/// A name the agent chose, bounded and made harmless for messages and logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label(Box<str>);

/// Fault in the grammar that the cursor finds.
#[derive(Debug)]
pub(crate) struct SyntaxFault {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

impl Rejection {
    pub(crate) fn new(reason: Reason, at: usize) -> Self {
        Self { reason, field: None, at }
    }

    pub(crate) fn wrong_type(what: &[u8], expected: &'static str, at: usize) -> Self {
        Self::new(Reason::WrongType { what: Label::of(what), expected }, at)
    }

    pub(crate) fn not_granted(what: &[u8], capability: Capability, at: usize) -> Self {
        Self::new(Reason::NotGranted { what: Label::of(what), capability }, at)
    }
}

impl From<SyntaxFault> for Rejection {
    fn from(fault: SyntaxFault) -> Self {
        Self::new(Reason::Syntax(fault.what), fault.at)
    }
}

impl Label {
    /// Returns at most 64 characters of `name`: those of `[A-Za-z0-9_./:@-]`, others as `?`.
    #[must_use]
    pub(crate) fn of(name: &[u8]) -> Self {
        let plain = |&byte: &u8| {
            let plain =
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b':' | b'@' | b'-');
            if plain { char::from(byte) } else { '?' }
        };
        Self(name.iter().take(64).map(plain).collect())
    }

    /// Returns the names of `labels` in one line.
    pub(crate) fn list(labels: &[Self]) -> String {
        labels.iter().map(Self::as_str).collect::<Vec<_>>().join(", ")
    }

    /// Returns the name without the quotes of its [`fmt::Display`].
    pub(crate) const fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0)
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = match &self.reason {
            Reason::UnknownField(name) => Some(name),
            Reason::NotGranted { what, .. } | Reason::WrongType { what, .. } => Some(what),
            _ => None,
        };
        if let Some(field) = self.field.as_ref().filter(|field| named != Some(*field)) {
            write!(f, "in {field}: ")?;
        }
        match &self.reason {
            Reason::Syntax(what) => write!(f, "the body is not one JSON object: {what}"),
            Reason::Duplicate(name) => write!(f, "{name} is there twice in one object; send it once"),
            Reason::Crowded => f.write_str("an object has more members than the API knows; send fewer"),
            Reason::UnknownField(name) => {
                write!(f, "{name} is not a field of this route; leave it out, or have the operator allow it")
            }
            Reason::WrongType { what, expected } => write!(f, "{what} must be {expected}"),
            Reason::NotGranted { what, capability } => write!(
                f,
                "{what} is not granted to this run; {}, or have \"{}\" granted",
                alternative(*capability, what),
                capability.name()
            ),
            Reason::ModelMissing => f.write_str("\"model\" is missing; name one model"),
            Reason::ModelMalformed => f.write_str("\"model\" must be one plain name, not a list"),
            Reason::ModelNotGranted(model) => {
                write!(
                    f,
                    "the model {model} is not granted to this run; choose one that GET /v1/models lists"
                )
            }
            Reason::ToolNotGranted(tool) => {
                write!(f, "the tool {tool} is not granted to this run; leave it out, or have it granted")
            }
            Reason::ToolUnnamed => f.write_str(
                "a tool without a name is not granted to this run; leave it out, or name one that is",
            ),
            Reason::NoRoute => f.write_str("this route takes no body"),
        }
    }
}

impl std::error::Error for Rejection {}

/// Returns what the agent can do without the grant.
fn alternative(capability: Capability, what: &Label) -> &'static str {
    match capability {
        Capability::MediaUrls => "send the content itself, as a data: URL",
        Capability::StoredFiles => "send the content itself",
        Capability::ServerTools | Capability::Mcp | Capability::WebSearch => {
            "use tools of type function or custom, which the agent runs"
        }
        Capability::StoredResponses => match what.as_str() {
            "previous_response_id" => {
                "no answer is stored: send the history as input (OpenAI Agents SDK: leave out previous_response_id)"
            }
            // A client that stores nothing sends the items themselves.
            "item_reference" | BARE_ID => {
                "no answer is stored: set store: false in the client (AI SDK: providerOptions.openai.store = false)"
            }
            _ => "send the whole conversation",
        },
        Capability::StoredPrompts => "send the prompt itself",
        Capability::Background => "leave it out and wait for the answer",
        Capability::UnlistedContent => "use a content type that the API documents",
        Capability::PremiumService => "leave it out and be served as usual",
    }
}
