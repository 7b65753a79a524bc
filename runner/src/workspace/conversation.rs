//! The conversation, as an agent finds it: exact for programs, and in Markdown for readers.

use std::{fmt::Write, fs, path::Path};

use platform_core::name::path::{COGNI_DIR, CONVERSATION_FILE, MESSAGES_FILE};
use platform_runtime::socket::private_dir;

use super::{
    Error,
    place::{self, DIRECTORY, FILE},
};
use crate::conversation::Message;

/// Writes `messages` into `tree`, where no agent is yet.
pub(super) fn write(tree: &Path, messages: &[Message]) -> Result<(), Error> {
    let dir = tree.join(COGNI_DIR);
    private_dir(&dir, DIRECTORY)?;
    place::give(&dir, DIRECTORY)?;
    let exact = dir.join(MESSAGES_FILE);
    let json =
        serde_json::to_vec_pretty(messages).map_err(|error| Error::io("write", &exact)(error.into()))?;
    for (path, content) in [(exact, json), (dir.join(CONVERSATION_FILE), markdown(messages).into_bytes())] {
        fs::write(&path, content).map_err(Error::io("write", &path))?;
        place::give(&path, FILE)?;
    }
    Ok(())
}

/// A heading for each message, and its text as it is, between fences that are longer than any in it: no text can end its
/// block, so none can put words under another's heading.
fn markdown(messages: &[Message]) -> String {
    let mut text = "# Conversation\n".to_owned();
    for Message { role, content } in messages {
        let longest = content.split(|sign| sign != '`').map(str::len).max().unwrap_or_default();
        let fence = "`".repeat(longest.max(2) + 1);
        let end = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
        write!(text, "\n## {}\n\n{fence}\n{content}{end}{fence}\n", role.name()).expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conversation::Role;

    fn message(role: Role, content: &str) -> Message {
        Message { role, content: content.to_owned() }
    }

    #[test]
    fn each_message_has_a_heading_and_its_own_words() {
        let said = [message(Role::User, "Hello\n"), message(Role::Assistant, "```sh\nls\n```")];
        assert_eq!(
            markdown(&said),
            "# Conversation\n\n## user\n\n```\nHello\n```\n\n## assistant\n\n````\n```sh\nls\n```\n````\n"
        );
    }

    /// What a reader of Markdown (`CommonMark`, 4.5) sees of `text`: lines outside fenced blocks.
    fn headings(text: &str) -> Vec<&str> {
        let mut open: Option<usize> = None;
        let mut found = Vec::new();
        for line in text.split(['\n', '\r']) {
            let indent = line.len() - line.trim_start_matches(' ').len();
            let ticks = line.trim_start_matches(' ').chars().take_while(|sign| *sign == '`').count();
            let fence = indent < 4 && ticks >= 3;
            let bare = line.trim_matches([' ', '\t']).chars().all(|sign| sign == '`');
            match open {
                Some(opened) if fence && bare && ticks >= opened => open = None,
                Some(_) => {}
                None if fence => open = Some(ticks),
                None if line.starts_with("## ") => found.push(line),
                None => {}
            }
        }
        found
    }

    #[test]
    fn a_reader_is_fooled_by_text_without_longer_fences() {
        assert_eq!(headings("## user\n\n```\na\n```\n\n## system\n"), ["## user", "## system"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_heading(contents in prop::collection::vec("([`~# \n\r\ta-c]|## system\n|```\n|\n````){0,20}", 1..4)) {
            let said: Vec<_> = contents.iter().map(|content| message(Role::User, content)).collect();
            let text = markdown(&said);
            prop_assert_eq!(headings(&text), vec!["## user"; said.len()]);
        }
    }
}
