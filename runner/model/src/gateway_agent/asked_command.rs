//! Describes commands that gateways ask about, and which of them a person can allow for good. Pure.

use platform_core::invalid::InvalidValue;
use serde::{Deserialize, Serialize};

use super::AllowedCommand;

/// Marks of parts that a gateway has hidden: OpenClaw hides what looks like a secret (measured with OpenClaw 2026.9.6).
const HIDDEN: [&str; 2] = ["***", "…"];
/// Marks of a text that OpenClaw has cut, or left out.
const CUT: [&str; 2] = ["…[truncated]", "full text suppressed]"];
/// Largest command that a person is asked about.
const MAX_COMMAND: usize = 32 << 10;

/// Command that a gateway asks about, as a person sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedCommand {
    /// The command, as the gateway prints it.
    pub command: String,
    /// Directory that it runs in.
    pub directory: Option<String>,
    /// True if that is the directory in which the session works.
    #[serde(default)]
    pub in_own_directory: bool,
    /// Names of variables that the model sets.
    #[serde(default)]
    pub environment: Vec<String>,
    /// Place that it runs at: `gateway`, `sandbox`, or `node NAME`; the gateway if absent.
    #[serde(default)]
    pub host: Option<String>,
    /// Warning of the gateway.
    #[serde(default)]
    pub warning: Option<String>,
}

impl AskedCommand {
    /// Returns whether a person sees all of the command, but for what looks like a secret.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.command.len() <= MAX_COMMAND && !CUT.iter().any(|mark| self.command.contains(mark))
    }

    /// Returns the command that a rule can name: a person sees all of it, and it runs at the gateway itself, in the directory
    /// in which the session works, in the environment that the agent always has.
    ///
    /// # Errors
    /// If a rule would allow more than a person sees; says why.
    pub fn allowable(&self) -> Result<AllowedCommand, InvalidValue> {
        let is_at_home = self.in_own_directory
            && self.environment.is_empty()
            && matches!(self.host.as_deref(), None | Some("gateway"));
        if !is_at_home {
            return Err("it runs in another directory, environment or place than its session".into());
        }
        if !self.is_whole() || HIDDEN.iter().any(|mark| self.command.contains(mark)) {
            return Err("the gateway hides a part of it".into());
        }
        AllowedCommand::parse(&self.command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_only_what_was_seen() {
        let asked = |change: &dyn Fn(&mut AskedCommand)| {
            let mut asked =
                AskedCommand { command: "make test".into(), in_own_directory: true, ..Default::default() };
            change(&mut asked);
            asked
        };
        assert_eq!(asked(&|_| {}).allowable().unwrap().as_str(), "make test");
        assert!(asked(&|it| it.host = Some("gateway".into())).allowable().is_ok());
        let suppressed = "[exec approval command exceeds display size limit; full text suppressed]";
        for (change, is_whole) in [
            (&(|it: &mut AskedCommand| it.in_own_directory = false) as &dyn Fn(&mut AskedCommand), true),
            (&|it| it.environment = vec!["PATH".into()], true),
            (&|it| it.host = Some("sandbox".into()), true),
            (&|it| it.host = Some("node gateway".into()), true),
            (&|it| it.command = "curl -H 'Authorization: ***'".into(), true),
            (&|it| it.command = "echo sk-abc…xyz".into(), true),
            (&|it| it.command = "ls\u{200b}".into(), true),
            (&|it| it.command = "echo a…[truncated]".into(), false),
            (&|it| it.command = suppressed.into(), false),
            (&|it| it.command = "x".repeat(MAX_COMMAND + 1), false),
        ] {
            let asked = asked(change);
            assert_eq!((asked.allowable().is_ok(), asked.is_whole()), (false, is_whole), "{asked:.100?}");
        }
    }
}
