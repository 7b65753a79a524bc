//! Prints differences: sanitised and coloured on a terminal, unchanged into a pipe.

use std::io::{self, IsTerminal, Write};

use platform_runtime::terminal;
use runner_files::{Changes, HiddenEntries};

use crate::plural::counted;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const CYAN: &str = "\x1b[36m";
const PLAIN: &str = "\x1b[0m";

/// Writes `diff` to standard output. A pipe gets the bytes that `git apply` needs.
pub(super) fn print_diff(diff: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() { out.write_all(coloured(diff).as_bytes()) } else { out.write_all(diff) }
}

/// Returns `diff` for a terminal. Each line is sanitised by itself, so that none hides the next.
fn coloured(diff: &[u8]) -> String {
    let mut is_header = true;
    let mut text = String::new();
    for line in diff.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        is_header = line.starts_with("diff --git ") || (is_header && !line.starts_with("@@ "));
        let colour = match line.chars().next() {
            _ if is_header => BOLD,
            Some('+') => GREEN,
            Some('-') => RED,
            Some('@') => CYAN,
            _ => "",
        };
        let safe = terminal::safe(&line);
        match (colour, safe.is_empty()) {
            ("", _) | (_, true) => text.push_str(&safe),
            _ => text.extend([colour, &safe, PLAIN]),
        }
        text.push('\n');
    }
    // Behind the last line end nothing follows.
    text.pop();
    text
}

/// Writes to standard error which entries a difference does not show.
pub(super) fn print_notes(changes: &Changes, hidden: &HiddenEntries) -> io::Result<()> {
    let mut err = io::stderr().lock();
    for entry in changes.unreadable() {
        writeln!(err, "not shown: {} {}", entry.path, terminal::safe(&entry.why))?;
    }
    for dir in &hidden.git_dirs {
        writeln!(err, "not shown: {dir} is a repository's own directory")?;
    }
    if !hidden.ignored.is_empty() {
        let ignored = counted(hidden.ignored.len(), "new path");
        writeln!(err, "not shown: {ignored} that .gitignore names (--all shows all)")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_difference_drives_the_terminal() {
        let diff = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\x1b]0;title\n+b\xff\n same\n";
        let expected = format!(
            "{BOLD}diff --git a/x b/x{PLAIN}\n{BOLD}--- a/x{PLAIN}\n{BOLD}+++ b/x{PLAIN}\n{CYAN}@@ -1 +1 @@{PLAIN}\n\
             {RED}-{PLAIN}\n{GREEN}+b\u{fffd}{PLAIN}\n same\n"
        );
        assert_eq!(coloured(diff), expected);
        assert_eq!(coloured(b""), "");
    }
}
