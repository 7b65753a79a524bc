//! Prints differences: visible and coloured on a terminal, unchanged into a pipe.

use std::io::{self, IsTerminal, Write};

use platform_runtime::terminal;
use runner_files::{Changes, HiddenEntries};

use super::{
    super::palette::{Palette, Tone},
    visible::VisibleLine,
};
use crate::plural::counted;

/// Writes `diff` to standard output. A pipe gets the bytes that `git apply` needs.
pub(super) fn print_diff(diff: &[u8], palette: Palette) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if out.is_terminal() { out.write_all(rendered(diff, palette).as_bytes()) } else { out.write_all(diff) }
}

/// Returns `diff` for a terminal, with all of its characters visible.
fn rendered(diff: &[u8], palette: Palette) -> String {
    let mut is_header = true;
    let mut text = String::new();
    for line in diff.split(|byte| *byte == b'\n') {
        is_header = line.starts_with(b"diff --git ") || (is_header && !line.starts_with(b"@@ "));
        let tone = match line.first() {
            _ if is_header => Tone::Bold,
            Some(b'+') => Tone::Good,
            Some(b'-') => Tone::Bad,
            Some(b'@') => Tone::Bold,
            _ => Tone::Plain,
        };
        text.push_str(&VisibleLine::of(line).render(tone, palette));
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
    fn a_difference_shows_all_of_itself() {
        let diff = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\x1b]0;title\n+b\xff\n same\n";
        let plain = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n\
                     -\x1b[7m\\x1b\x1b[0m]0;title\n+b\x1b[7m\\xff\x1b[0m\n same\n";
        assert_eq!(rendered(diff, Palette::Plain), plain);
        let coloured = rendered(b"@@ -1 +1 @@\n-a\n+b\n c\n", Palette::Coloured);
        assert_eq!(coloured, "\x1b[1m@@ -1 +1 @@\x1b[0m\n\x1b[31m-a\x1b[0m\n\x1b[32m+b\x1b[0m\n c\n");
        assert_eq!(rendered(b"", Palette::Coloured), "");
    }
}
