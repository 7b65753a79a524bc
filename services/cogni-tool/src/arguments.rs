//! Reads the command line.

use std::ffi::OsString;

use platform_core::id::{ToolCallId, ToolName};

use crate::error::Error;

/// Text of `--help`.
pub(crate) const HELP: &str = "\
Calls host tools: tools that run outside this sandbox, for its run.

usage: cogni-tool list [--json]
       cogni-tool exec [--call-id ID] NAME ARGUMENTS

  list       prints names and descriptions of the tools that this run may call;
             --json adds the JSON Schema of their arguments
  exec       calls the tool NAME once and prints its result as JSON;
             ARGUMENTS is a JSON object, or - to read it from standard input
  --call-id  id of the call, instead of a new random one: with the id of an
             earlier call, a tool that writes runs if it has not run yet, and
             else gets that call's answer; a tool that reads runs again

examples:
  cogni-tool list
  cogni-tool exec core__get_current_time '{}' | jq -r .utc
  cogni-tool exec github__read_issue '{\"number\": 7}'
  jq -n --rawfile body report.md '{number: 7, $body}' | cogni-tool exec github__comment -

A failure is one line of JSON on standard error: {\"code\", \"message\", \"callId\"}.
exit codes: 0 done, 1 the tool failed, 2 usage, 3 denied, 4 unavailable
";

/// Command of an invocation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Prints the help.
    Help,
    /// Prints the version.
    Version,
    /// Lists the tools.
    List {
        /// Form of the list.
        form: ListForm,
    },
    /// Executes a tool.
    Exec(CallOrder),
}

/// Form in which tools are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListForm {
    /// A line for each tool.
    Text,
    /// A JSON array.
    Json,
}

/// A call as it was ordered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallOrder {
    /// The tool.
    pub(crate) tool: ToolName,
    /// Source of its arguments.
    pub(crate) arguments: ArgumentSource,
    /// Id of the call; a new one if absent.
    pub(crate) call_id: Option<ToolCallId>,
}

/// Source of a tool's arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgumentSource {
    /// The command line.
    Text(String),
    /// Standard input.
    Stdin,
}

impl Command {
    pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Self, Error> {
        let not_text = |_text| Error::Usage("an argument is not UTF-8".to_owned());
        let words = arguments.into_iter().map(|word| word.into_string().map_err(not_text));
        let words = words.collect::<Result<Vec<_>, _>>()?;
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] => Err(Error::Usage("a command is missing: `list` or `exec`".to_owned())),
            ["-h" | "--help" | "help", ..] | [_, "-h" | "--help"] => Ok(Self::Help),
            ["-V" | "--version"] => Ok(Self::Version),
            ["list"] => Ok(Self::List { form: ListForm::Text }),
            ["list", "--json"] => Ok(Self::List { form: ListForm::Json }),
            ["list", other, ..] => Err(Error::Usage(format!("`list` takes `--json` alone, not `{other}`"))),
            ["exec", rest @ ..] => parse_exec(rest).map(Self::Exec),
            [other, ..] => Err(Error::Usage(format!("no command `{other}`: there are `list` and `exec`"))),
        }
    }
}

fn parse_exec(words: &[&str]) -> Result<CallOrder, Error> {
    let (id, rest) = match words {
        ["--call-id", id, rest @ ..] => (Some(*id), rest.to_vec()),
        [tool, arguments, "--call-id", id] => (Some(*id), vec![*tool, *arguments]),
        _ => (None, words.to_vec()),
    };
    let invalid = |error: platform_core::id::InvalidId| Error::Usage(error.to_string());
    let call_id = id.map(ToolCallId::parse).transpose().map_err(invalid)?;
    let [tool, arguments] = rest.as_slice() else {
        let wrong =
            "`exec` takes the name of a tool and its arguments as one text of JSON, `'{}'` if there are none";
        return Err(Error::Usage(wrong.to_owned()));
    };
    let arguments = match *arguments {
        "-" => ArgumentSource::Stdin,
        text => ArgumentSource::Text(text.to_owned()),
    };
    Ok(CallOrder { tool: ToolName::parse(tool).map_err(invalid)?, arguments, call_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Command, Error> {
        Command::parse(words.iter().map(Into::into).collect())
    }

    #[test]
    fn a_call_has_a_tool_and_arguments() {
        let tool = ToolName::parse("a__b").unwrap();
        let call = |arguments, id: Option<&str>| {
            let call_id = id.map(|id| ToolCallId::parse(id).unwrap());
            Command::Exec(CallOrder { tool: tool.clone(), arguments, call_id })
        };
        let text = || ArgumentSource::Text("{}".to_owned());
        assert_eq!(parse(&["exec", "a__b", "{}"]).unwrap(), call(text(), None));
        assert_eq!(parse(&["exec", "a__b", "-"]).unwrap(), call(ArgumentSource::Stdin, None));
        for words in [&["exec", "--call-id", "c1", "a__b", "{}"], &["exec", "a__b", "{}", "--call-id", "c1"]]
        {
            assert_eq!(parse(words).unwrap(), call(text(), Some("c1")));
        }
    }

    #[test]
    fn a_wrong_command_line_is_named() {
        for (words, reason) in [
            (&[][..], "a command is missing"),
            (&["run"], "no command `run`"),
            (&["list", "--all"], "not `--all`"),
            (&["exec"], "as one text of JSON"),
            (&["exec", "a__b"], "as one text of JSON"),
            (&["exec", "a__b", "{}", "{}"], "as one text of JSON"),
            (&["exec", "a b", "{}"], "a tool's name"),
            (&["exec", "--call-id", "", "a__b", "{}"], "the id of a tool call"),
        ] {
            let error = parse(words).unwrap_err();
            assert!(error.to_string().contains(reason), "{words:?}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
        assert_eq!(parse(&["exec", "--help"]).unwrap(), Command::Help);
    }
}
