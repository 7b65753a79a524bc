//! Finds and splits the command lines in documents and advice, for tests that parse them.

/// Splits a command as a shell does, and fills its placeholders. Stops at the end of the command: at a pipe, a
/// redirection, a list operator or a comment.
pub(crate) fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        let last = words.last_mut().expect("there is always a word");
        match (c, quote) {
            ('\'' | '"', None) => quote = Some(c),
            (_, Some(open)) if c == open => quote = None,
            (' ', None) if last.is_empty() => {}
            (' ', None) => words.push(String::new()),
            ('|' | '>' | '<' | '&' | ';' | ')', None) => break,
            ('#', None) if last.is_empty() => break,
            _ => last.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words.into_iter().map(fill_placeholder).collect()
}

/// Returns a value for a placeholder, and any other word as it is.
fn fill_placeholder(word: String) -> String {
    match word.as_str() {
        "N" | "DOLLARS" | "CREDITS" => "1".to_owned(),
        "RUN" | "$RUN" => "run-1".to_owned(),
        "CALL" | "$CALL" => "01234567".to_owned(),
        "NAME" => "name".to_owned(),
        _ => word,
    }
}

/// Returns the calls of `program` in the blocks of shell code of a Markdown page, each with its line number.
pub(crate) fn shell_commands(page: &str, program: &str) -> Vec<(usize, String)> {
    let mut commands = Vec::new();
    let mut in_shell = false;
    let mut unfinished: Option<(usize, String)> = None;
    for (number, line) in page.lines().enumerate().map(|(at, line)| (at + 1, line.trim())) {
        if let Some(language) = line.strip_prefix("```") {
            in_shell = !in_shell && matches!(language, "sh" | "bash" | "console");
            continue;
        }
        if !in_shell {
            continue;
        }
        let (from, text) = match unfinished.take() {
            Some((from, begun)) => (from, format!("{begun} {line}")),
            None => (number, line.trim_start_matches("$ ").to_owned()),
        };
        match text.strip_suffix('\\') {
            Some(begun) => unfinished = Some((from, begun.trim_end().to_owned())),
            None => commands.extend(calls_in(&text, program).map(|call| (from, call))),
        }
    }
    commands
}

/// Returns the calls of `program` in a line: at its beginning, after an operator, or in `$(…)`.
fn calls_in<'l>(line: &'l str, program: &'l str) -> impl Iterator<Item = String> + 'l {
    let is_call = move |at: usize| {
        let before = line[..at].trim_end();
        let after = line[at + program.len()..].chars().next();
        let is_first =
            before.is_empty() || before.ends_with(['|', ';', '&', '(']) || before.ends_with("sudo");
        is_first && after.is_none_or(|next| next == ' ')
    };
    line.match_indices(program).filter(move |(at, _)| is_call(*at)).map(|(at, _)| line[at..].to_owned())
}

#[test]
fn a_command_ends_where_the_shell_ends_it() {
    for (line, expected) in [
        ("sluice runs ls   # all", vec!["sluice", "runs", "ls"]),
        ("sluice run \"a | b\" || echo no", vec!["sluice", "run", "a | b"]),
        (
            "sluice limit --account 'a b' --cost DOLLARS",
            vec!["sluice", "limit", "--account", "a b", "--cost", "1"],
        ),
    ] {
        assert_eq!(words(line), expected, "{line}");
    }
}

#[test]
fn commands_are_found_in_shell_blocks_only() {
    let page = "sluice no\n```sh\nsluice run \\\n  --json x\nX=$(sluice runs ls | jq .)\ncat sluice.toml\n```\n```text\nsluice no\n```";
    assert_eq!(
        shell_commands(page, "sluice"),
        [(3, "sluice run --json x".to_owned()), (5, "sluice runs ls | jq .)".to_owned())]
    );
}
