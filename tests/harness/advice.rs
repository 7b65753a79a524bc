//! Finds the commands that the command line advises in its output, and runs them as they are printed. Only placeholders
//! are filled.

use crate::{Outcome, sluice::Sluice};

/// Returns the commands that `sluice audit show` lists.
#[must_use]
pub fn listed(text: &str) -> Vec<String> {
    let after = text.split_once("\n  commands:\n").map_or("", |(_, rest)| rest);
    after.lines().map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

/// Returns the commands that a failed run prints as the next ones.
#[must_use]
pub fn next(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("sluice: next: ")).map(str::to_owned).collect()
}

/// Returns the commands between backquotes that begin with `program`, in sentences.
#[must_use]
pub fn quoted(text: &str, program: &str) -> Vec<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.filter(|command| command.split(' ').next() == Some(program)).map(str::to_owned).collect()
}

/// Runs `command` with `sluice`. Each placeholder is a whole word, and `values` has what stands in its place.
///
/// # Panics
/// If it is not a call of `sluice`.
pub async fn follow(sluice: Sluice, command: &str, values: &[(&str, &str)]) -> Outcome {
    let words = words(command);
    let (program, arguments) = words.split_first().expect("a command");
    assert_eq!(program, "sluice", "{command}");
    let fill = |word: &String| {
        let value = values.iter().find(|(placeholder, _)| placeholder == word);
        value.map_or_else(|| word.clone(), |(_, value)| (*value).to_owned())
    };
    let filled: Vec<_> = arguments.iter().map(fill).collect();
    sluice.run(&filled.iter().map(String::as_str).collect::<Vec<_>>()).await
}

/// Splits a command as a shell does: words in quotation marks are one word.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        let last = words.last_mut().expect("there is always a word");
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            (' ', None) => words.push(String::new()),
            _ => last.push(c),
        }
    }
    words
}
