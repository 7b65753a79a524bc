//! Writes a command that waits for a person in the forms of the protocol. Pure.

use platform_core::{invisible::is_invisible, json};
use runner_model::gateway_agent::AskedCommand;
use runner_store::StoredToolCall;
use serde_json::{Value, json};

/// Longest title of a request in the form of plugins, in characters.
const MAX_TITLE: usize = 80;
/// Beginning of a host that is a node.
const NODE: &str = "node ";
pub(super) const ALLOW_ONCE: &str = "allow-once";
pub(super) const ALLOW_ALWAYS: &str = "allow-always";
pub(super) const DENY: &str = "deny";

/// Command that waits for a person, and the decisions about it.
#[derive(Debug)]
pub(super) struct CommandRequest {
    asked: AskedCommand,
    decisions: &'static [&'static str],
}

impl CommandRequest {
    /// Reads the stored arguments of a call. One that cannot be read can only be denied: what would run is unseen.
    pub(super) fn of(call: &StoredToolCall) -> Self {
        Self::read(call.args.as_deref(), call.tool.as_str())
    }

    fn read(args: Option<&str>, tool: &str) -> Self {
        match args.and_then(|args| json::from_str(args, json::Bounds::STORED).ok()) {
            Some(asked) => Self { asked, decisions: &[ALLOW_ONCE, ALLOW_ALWAYS, DENY] },
            None => {
                let warning = Some("the command cannot be read: it can only be denied".to_owned());
                let asked = AskedCommand { command: tool.to_owned(), warning, ..AskedCommand::default() };
                Self { asked, decisions: &[DENY] }
            }
        }
    }

    /// Returns whether a decision is offered.
    pub(super) fn offers(&self, decision: &str) -> bool {
        self.decisions.contains(&decision)
    }

    /// Returns the request in the form of OpenClaw's own commands.
    pub(super) fn exec(&self) -> Value {
        let mut request = self.place();
        request["command"] = self.asked.command.as_str().into();
        request
    }

    /// Returns what `exec.approval.get` answers of the request.
    pub(super) fn details(&self) -> Value {
        let mut details = self.place();
        details["commandText"] = self.asked.command.as_str().into();
        details["commandPreview"] = Value::Null;
        details
    }

    /// Returns all that the command depends on, and the decisions.
    fn place(&self) -> Value {
        let AskedCommand { directory, environment, host, warning, .. } = &self.asked;
        let host = host.as_deref().unwrap_or("gateway");
        let node = host.strip_prefix(NODE);
        json!({
            "host": if node.is_some() { "node" } else { host }, "nodeId": node, "cwd": directory,
            "envKeys": environment, "warningText": warning, "allowedDecisions": self.decisions,
        })
    }

    /// Returns the request in the form of plugins.
    pub(super) fn plugin(&self) -> Value {
        let title: String = self.asked.command.chars().take(MAX_TITLE).collect();
        json!({
            "title": in_one_line(&title), "description": self.description(), "severity": "warning",
            "pluginId": null, "allowedDecisions": self.decisions,
        })
    }

    /// Returns the whole command for a person, with all that it depends on, each in one line.
    fn description(&self) -> String {
        let AskedCommand { command, directory, environment, host, warning, .. } = &self.asked;
        let variables = Some(environment.join(", ")).filter(|names| !names.is_empty());
        let lines = [
            ("Command", Some(command)),
            ("Directory", directory.as_ref()),
            ("Host", host.as_ref()),
            ("Warning", warning.as_ref()),
            ("Variables that the model sets", variables.as_ref()),
        ];
        let lines = lines.into_iter().filter_map(|(name, value)| Some((name, value?)));
        lines.map(|(name, value)| format!("{name}: {}", in_one_line(value))).collect::<Vec<_>>().join("\n")
    }
}

/// Returns `text` with escapes for what a person does not see, ends of lines among it: it could forge other lines.
fn in_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible(c) {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(args: Value) -> CommandRequest {
        CommandRequest::read(Some(&args.to_string()), "exec")
    }

    #[test]
    fn a_person_sees_where_a_command_runs() {
        for (host, shown, node) in [
            (Value::Null, "gateway", Value::Null),
            ("gateway".into(), "gateway", Value::Null),
            ("sandbox".into(), "sandbox", Value::Null),
            ("node pi".into(), "node", "pi".into()),
        ] {
            let args = json!({
                "command": "make", "directory": "/w", "environment": ["PATH"], "host": host, "warning": "Look",
            });
            let request = request(args);
            for (form, command) in [(request.exec(), "command"), (request.details(), "commandText")] {
                assert_eq!((&form["host"], &form["nodeId"]), (&shown.into(), &node));
                assert_eq!((&form[command], &form["cwd"]), (&"make".into(), &"/w".into()));
                assert_eq!((&form["envKeys"][0], &form["warningText"]), (&"PATH".into(), &"Look".into()));
                assert_eq!((form.get("security"), form.get("ask")), (None, None), "none is known");
            }
        }
    }

    #[test]
    fn a_command_forges_no_line() {
        let args = json!({
            "command": "rm x\nDirectory: /safe\u{2028}\u{1b}[2K", "directory": "/w\rDirectory: /safe",
            "environment": ["A\nWarning: none"],
        });
        let form = request(args).plugin();
        let description = form["description"].as_str().unwrap();
        let lines: Vec<_> = description.lines().map(|line| line.split(':').next().unwrap()).collect();
        assert_eq!(lines, ["Command", "Directory", "Variables that the model sets"], "{description}");
        assert!(description.contains(r"rm x\u{a}Directory"), "{description}");
        for text in [description, form["title"].as_str().unwrap()] {
            assert!(!text.contains(['\r', '\u{2028}', '\u{1b}']), "{text:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_can_only_be_denied() {
        for args in [None, Some(""), Some("[]"), Some(r#"{"command":7}"#)] {
            let request = CommandRequest::read(args, "exec");
            for form in [request.exec(), request.details(), request.plugin()] {
                assert_eq!(form["allowedDecisions"], json!([DENY]), "{args:?}");
            }
            assert!(request.offers(DENY) && !request.offers(ALLOW_ONCE) && !request.offers(ALLOW_ALWAYS));
        }
        let readable = request(json!({ "command": "ls" }));
        assert!([ALLOW_ONCE, ALLOW_ALWAYS, DENY].iter().all(|choice| readable.offers(choice)));
    }
}
