//! Collects the output of Docker while it builds an image. Shows its steps, and finds the reason of a failure.

use std::{
    borrow::Cow,
    collections::VecDeque,
    io::{self, Write},
};

use platform_runtime::terminal;

/// Last lines that are searched for the reason of a failure.
const MAX_TAIL: usize = 20;

/// Sequences with which Docker's older builder colours what a step writes to standard error.
const COLOURS: [&str; 2] = ["\x1b[91m", "\x1b[0m"];

/// Output of Docker, without credentials.
#[derive(Debug, Default)]
pub(super) struct BuildOutput {
    text: String,
    tail: VecDeque<String>,
}

impl BuildOutput {
    /// Adds a line, and shows it if it tells a step.
    pub(super) fn add(&mut self, line: &str) {
        let is_step = ["Step ", "downloading "].iter().any(|start| line.starts_with(start))
            || line.starts_with('#') && (line.contains(" [") || line.contains("downloading "));
        if is_step {
            // The build goes on if its progress cannot be shown.
            let _shown = writeln!(io::stderr(), "  {}", terminal::safe(&without_credentials(line)));
        }
        self.keep(line);
    }

    /// Adds a line.
    pub(super) fn keep(&mut self, line: &str) {
        let line = COLOURS.iter().fold(line.to_owned(), |line, colour| line.replace(colour, ""));
        let line = without_credentials(&line);
        self.text.push_str(&line);
        self.text.push('\n');
        self.tail.push_back(line.into_owned());
        if self.tail.len() > MAX_TAIL {
            self.tail.pop_front();
        }
    }

    /// Returns all lines.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first error of apt, else the first line that reports one, else the last line.
    pub(super) fn reason(&self) -> String {
        let is_of_apt = |line: &&String| line.starts_with("E: ") || line.contains(" E: ");
        let is_error = |line: &&String| line.to_lowercase().contains("error");
        let found = self.tail.iter().find(is_of_apt).or_else(|| self.tail.iter().find(is_error));
        let line = found.or_else(|| self.tail.back());
        line.map_or_else(
            || "Docker printed nothing".to_owned(),
            |line| terminal::safe(line.trim()).into_owned(),
        )
    }
}

/// Returns `line` with `…` in place of the user and password of each address.
fn without_credentials(line: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(line);
    let mut from = 0;
    while let Some(at) = shown[from..].find("://") {
        let start = from + at + "://".len();
        let is_end = |c: char| c.is_whitespace() || "/?#\"'".contains(c);
        let end = shown[start..].find(is_end).map_or(shown.len(), |length| start + length);
        if let Some(length) = shown[start..end].rfind('@') {
            shown.to_mut().replace_range(start..start + length, "…");
        }
        from = start;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_registries_are_not_kept() {
        let mut output = BuildOutput::default();
        output.keep("error: GET https://user:canary@npm.corp/a and https://canary@pypi.corp");
        output.keep("plain https://npm.corp/@scope/a b@c");
        let expected = "error: GET https://…@npm.corp/a and https://…@pypi.corp\n\
            plain https://npm.corp/@scope/a b@c\n";
        assert_eq!(output.text(), expected);
        assert_eq!(output.reason(), expected.lines().next().unwrap());
    }

    #[test]
    fn apts_own_error_is_the_reason() {
        let reason = |lines: [&str; 3]| {
            let mut output = BuildOutput::default();
            lines.iter().for_each(|line| output.keep(line));
            output.reason()
        };
        let last = "The command '/bin/sh -c apt-get install nosuch' returned a non-zero code: 100";
        let unknown = "E: Unable to locate package nosuch";
        assert_eq!(reason(["Reading package lists...", &format!("\x1b[91m{unknown}"), last]), unknown);
        assert_eq!(
            reason(["#9 1.2 E: Failed to fetch x", "#9 ERROR: process", last]),
            "#9 1.2 E: Failed to fetch x"
        );
        assert_eq!(reason(["one", "two", last]), last, "control");
    }
}
