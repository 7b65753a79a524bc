//! Prints errors, as JSON for programs that asked for JSON.
//!
//! The shape is `{"error":{"code","message"}}`, one line on standard output. Standard error has the text, too.

use std::io::{self, Write};

use clap::{ArgMatches, error::ErrorKind};
use platform_core::code::Code;
use platform_runtime::{report, terminal};
use runner_store as store;
use serde_json::{Value, json};

use super::error::Error;

/// Option of all commands that can print JSON.
const JSON_OPTION: &str = "json";

impl Error {
    /// Returns this error as JSON. A full queue has more fields, for programs that try again.
    fn json(&self) -> Value {
        let mut error = match self.cause().downcast_ref() {
            Some(store::Error::Full(full)) => full.json(),
            _ => json!({ "message": report::chain(self) }),
        };
        error["code"] = self.word().into();
        json!({ "error": error })
    }
}

/// ErrorFormat in which the errors of a command are reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorFormat {
    Text,
    /// JSON on standard output, in addition to the text.
    Json,
}

impl ErrorFormat {
    /// Returns the form that the command line asks for.
    pub(super) fn of(matches: &ArgMatches) -> Self {
        let is_json = matches.try_get_one::<bool>(JSON_OPTION).ok().flatten().is_some_and(|json| *json);
        match matches.subcommand() {
            _ if is_json => Self::Json,
            Some((_, matches)) => Self::of(matches),
            None => Self::Text,
        }
    }

    /// Reports the error that ended a command.
    pub(super) fn report(self, error: &Error) {
        if self == Self::Json {
            // Without a reader, the text on standard error is still there.
            drop(print_json(&error.json()));
        }
        report::error("sluice", error);
        if !rustix::process::geteuid().is_root() && was_forbidden(error) {
            drop(writeln!(io::stderr(), "sluice: next: run it as root, `sudo sluice …`"));
        }
    }
}

/// Returns whether the system has refused something that root may do.
fn was_forbidden(error: &Error) -> bool {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let mut causes = causes.filter_map(|error| error.downcast_ref::<io::Error>());
    causes.any(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Reports a command line that cannot be parsed, and ends the process. Help and version are not errors.
pub(super) fn refuse_usage(error: &clap::Error) -> ! {
    let is_help = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // The arguments may be no UTF-8: that may be what is wrong with them.
    if !is_help && std::env::args_os().any(|word| word == "--json") {
        let message = usage_message(&error.to_string());
        drop(print_json(&json!({ "error": { "code": Code::Usage.word(), "message": message } })));
    }
    error.exit()
}

/// Returns what a rendered usage error says, in one line without the usage itself.
fn usage_message(rendered: &str) -> String {
    let lines = rendered.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:"));
    let lines: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("For more")).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

fn print_json(json: &Value) -> io::Result<()> {
    writeln!(io::stdout(), "{}", terminal::safe_json(&json.to_string()))
}

#[cfg(test)]
mod tests {
    use runner_control_client as data_plane;

    use super::{super::error::Misused, *};
    use crate::commands::command_line;

    #[test]
    fn an_error_is_an_object_with_code_and_message() {
        let error = Error::from(Misused("name a run".to_owned()));
        assert_eq!(error.json(), json!({ "error": { "code": "usage", "message": "name a run" } }));
        let refused =
            data_plane::Error::Refused { code: "reload_refused".to_owned(), message: "no".to_owned() };
        assert_eq!(Error::from(refused).json()["error"]["code"], "reload_refused");
    }

    #[test]
    fn a_usage_error_names_its_arguments() {
        for (line, expected) in [
            ("sluice audit show --json --run", "a value is required for '--run <RUN>' but none was supplied"),
            ("sluice runs apply", "the following required arguments were not provided: <RUN>"),
        ] {
            let error = command_line().try_get_matches_from(line.split(' ')).unwrap_err();
            assert_eq!(usage_message(&error.to_string()), expected, "{error}");
        }
    }

    #[test]
    fn json_is_wanted_where_the_option_is_given() {
        for (line, wanted) in [
            ("sluice runs show r1 --json", ErrorFormat::Json),
            ("sluice agents --json ls", ErrorFormat::Json),
            ("sluice run --json q", ErrorFormat::Json),
            ("sluice runs show r1", ErrorFormat::Text),
            ("sluice metrics", ErrorFormat::Text),
        ] {
            let matches = command_line().try_get_matches_from(line.split(' ')).unwrap();
            assert_eq!(ErrorFormat::of(&matches), wanted, "{line}");
        }
    }
}
