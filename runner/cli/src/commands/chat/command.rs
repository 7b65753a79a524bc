//! Reads what a person types in a conversation: a message for the agent, or a command of `sluice chat` itself.
//!
//! A command costs no call. Pure.

use platform_core::id::{AgentId, ModelName};

use super::parse_agent;

/// Help that `/help` shows.
pub(super) const HELP: &str = "\
/model [MODEL]  show the model, or ask another from now on
/agent [AGENT]  show the agent, or talk to another from now on
/help           show this
/quit           end the conversation, as Ctrl-D does
Arrow keys edit the line and bring back earlier ones. Pasted lines are one message. Ctrl-C cancels an answer.
";

/// Text that a person has typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// Nothing but spaces.
    Nothing,
    /// A message for the agent.
    Message,
    /// A command.
    Command(Command),
    /// A command that cannot be followed, for this reason.
    Unusable(String),
}

/// Command of the conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Help,
    /// Show the model, or ask another one.
    Model(Option<ModelName>),
    /// Show the agent, or talk to another one.
    Agent(Option<AgentId>),
    Quit,
}

impl Typed {
    /// Reads `text`. A command is a line that begins with `/` and a word; so a path begins a message.
    pub(super) fn read(text: &str) -> Self {
        let line = text.trim_end();
        if line.trim().is_empty() {
            return Self::Nothing;
        }
        let Some(command) = line.strip_prefix('/').filter(|rest| !rest.contains('\n')) else {
            return Self::Message;
        };
        let (name, value) = command.split_once(' ').unwrap_or((command, ""));
        let value = value.trim();
        let value = (!value.is_empty()).then_some(value);
        match (name, value) {
            ("help", None) => Self::Command(Command::Help),
            ("quit", None) => Self::Command(Command::Quit),
            ("help" | "quit", Some(_)) => Self::Unusable(format!("/{name} takes nothing else")),
            ("model", _) => Self::with(value.map(ModelName::parse), Command::Model),
            ("agent", _) => Self::with(value.map(parse_agent), Command::Agent),
            _ if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphabetic()) => Self::Message,
            _ => Self::Unusable(format!(
                "there is no command /{name}: /help lists them. A message may begin with a space and then /{name}"
            )),
        }
    }

    fn with<T, E: ToString>(value: Option<Result<T, E>>, command: fn(Option<T>) -> Command) -> Self {
        match value.transpose() {
            Ok(value) => Self::Command(command(value)),
            Err(error) => Self::Unusable(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_messages() {
        let model = |name: &str| Typed::Command(Command::Model(Some(name.parse().unwrap())));
        for (text, expected) in [
            ("", Typed::Nothing),
            (" \n", Typed::Nothing),
            ("/help", Typed::Command(Command::Help)),
            ("/quit ", Typed::Command(Command::Quit)),
            ("/model", Typed::Command(Command::Model(None))),
            ("/model gpt-4o\n", model("gpt-4o")),
            ("hello", Typed::Message),
            ("/etc/hosts is wrong", Typed::Message),
            ("/ is a slash", Typed::Message),
            (" /help", Typed::Message),
            ("/help\nis what I typed", Typed::Message),
        ] {
            assert_eq!(Typed::read(text), expected, "{text:?}");
        }
        let agent = Typed::Command(Command::Agent(Some(AgentId::parse("sandbox:codex").unwrap())));
        assert_eq!(Typed::read("/agent codex"), agent);
        for text in ["/helm", "/help me", "/agent a b"] {
            assert!(matches!(Typed::read(text), Typed::Unusable(_)), "{text}");
        }
    }
}
