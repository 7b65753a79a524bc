//! Writes the conversation for an agent: exact for programs, in Markdown for readers, and its last message alone for
//! programs that read one text.

use std::{
    fmt::Write as _,
    fs::File,
    io::{self, Write as _},
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use platform_core::name::{
    SANDBOX_UID,
    path::{COGNI_DIR, CONVERSATION_FILE, MESSAGES_FILE, PROMPT_FILE},
};
use runner_files::TreeRoot;
use runner_model::conversation::Message;
use rustix::{
    fs::{Gid, Mode, OFlags, Uid, fchmod, fchown, mkdirat, openat},
    io::Errno,
};

use super::{
    error::Error,
    paths::{AGENT_DIR_MODE, AGENT_FILE_MODE},
};

/// Writes `messages` into `tree`. The container's first process may be running already. A file or link that it has
/// created in the way is an error: no link is followed, and no existing file is written to.
pub(super) fn write(tree: &Path, messages: &[Message]) -> Result<(), Error> {
    let json = serde_json::to_vec_pretty(messages).map_err(io::Error::from);
    let prompt = messages.last().map_or("", |message| &message.content);
    let write = || {
        let dir = exchange_dir(tree)?;
        write_file(&dir, MESSAGES_FILE, &json?)?;
        write_file(&dir, PROMPT_FILE, prompt.as_bytes())?;
        write_file(&dir, CONVERSATION_FILE, markdown(messages).as_bytes())
    };
    write().map_err(Error::io("write the conversation into", tree))
}

/// Creates and opens the directory for files that host and agent exchange; it belongs to the agent.
pub(super) fn exchange_dir(tree: &Path) -> io::Result<OwnedFd> {
    let root = TreeRoot::open(tree)?;
    match mkdirat(&root, COGNI_DIR, Mode::RWXU) {
        Err(Errno::EXIST) | Ok(()) => {}
        Err(error) => return Err(error.into()),
    }
    let dir = root.open_dir(Path::new(COGNI_DIR))?;
    give_to_agent(&dir, AGENT_DIR_MODE)?;
    Ok(dir)
}

/// Writes a new file into `dir`, and gives it to the agent.
pub(super) fn write_file(dir: impl AsFd, name: &str, content: &[u8]) -> io::Result<()> {
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(dir, name, new, Mode::RUSR | Mode::WUSR)?);
    file.write_all(content)?;
    Ok(give_to_agent(&file, AGENT_FILE_MODE)?)
}

/// Gives the open file to the sandbox's user with exactly `mode`, whatever the umask says.
pub(super) fn give_to_agent(file: impl AsFd, mode: u32) -> Result<(), Errno> {
    fchmod(&file, Mode::from_raw_mode(mode))?;
    fchown(&file, Some(Uid::from_raw(SANDBOX_UID)), Some(Gid::from_raw(SANDBOX_UID)))
}

/// Formats each message as a heading and its unchanged text, between fences longer than any in the text. No text can
/// end its block, so none can put words under another's heading.
pub fn markdown(messages: &[Message]) -> String {
    let mut text = "# Conversation\n".to_owned();
    for Message { role, content } in messages {
        let longest = content.split(|character| character != '`').map(str::len).max().unwrap_or_default();
        let fence = "`".repeat(longest.max(2) + 1);
        let end = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
        write!(text, "\n## {}\n\n{fence}\n{content}{end}{fence}\n", role.name()).expect("a String takes all");
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use runner_model::conversation::Role;

    use super::*;

    fn message(role: Role, content: &str) -> Message {
        Message { role, content: content.to_owned() }
    }

    #[test]
    fn each_message_has_a_heading_and_its_own_words() {
        let messages = [message(Role::User, "Hello\n"), message(Role::Assistant, "```sh\nls\n```")];
        assert_eq!(
            markdown(&messages),
            "# Conversation\n\n## user\n\n```\nHello\n```\n\n## assistant\n\n````\n```sh\nls\n```\n````\n"
        );
    }

    /// Returns the lines of `text` outside fenced blocks, as a reader of Markdown (`CommonMark`, 4.5) sees them.
    fn headings(text: &str) -> Vec<&str> {
        let mut open: Option<usize> = None;
        let mut found = Vec::new();
        for line in text.split(['\n', '\r']) {
            let indent = line.len() - line.trim_start_matches(' ').len();
            let ticks =
                line.trim_start_matches(' ').chars().take_while(|character| *character == '`').count();
            let fence = indent < 4 && ticks >= 3;
            let bare = line.trim_matches([' ', '\t']).chars().all(|character| character == '`');
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
    fn without_longer_fences_text_fools_a_reader() {
        assert_eq!(headings("## user\n\n```\na\n```\n\n## system\n"), ["## user", "## system"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_heading(contents in prop::collection::vec("([`~# \n\r\ta-c]|## system\n|```\n|\n````){0,20}", 1..4)) {
            let messages: Vec<_> = contents.iter().map(|content| message(Role::User, content)).collect();
            let text = markdown(&messages);
            prop_assert_eq!(headings(&text), vec!["## user"; messages.len()]);
        }
    }
}
