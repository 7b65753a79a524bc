//! Tells messages from commands. OpenClaw takes a text that begins with `/` as a command, and some of them override what an
//! agent may do.

use platform_core::invisible::is_invisible;

use super::refusal::{FrameRefusal, RefusalCause};

/// Longest message, in characters.
const MAX_MESSAGE: usize = 100_000;
/// Command that ends the running answer.
const STOP: &str = "/stop";
/// Commands that OpenClaw also takes from the middle of a text, and that override what an agent may do.
const DIRECTIVES: [&str; 6] = ["/exec", "/elevated", "/elev", "/permissions", "/bash", "/approve"];

/// Meaning of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// Text for the agent.
    Text,
    /// Command that ends the running answer.
    Stop,
}

/// Returns the meaning of a message.
///
/// # Errors
/// If it is empty, too long, or has a command that does not pass.
pub fn read_message(text: &str) -> Result<MessageKind, FrameRefusal> {
    let length = text.chars().count();
    if length > MAX_MESSAGE {
        let message = format!("the message has {length} characters, more than {MAX_MESSAGE}: shorten it");
        return Err(RefusalCause::MessageTooLong.with(message));
    }
    let trimmed = text.trim_matches(is_blank);
    if trimmed.is_empty() {
        return Err(RefusalCause::MessageEmpty.with("the message is empty"));
    }
    if trimmed.eq_ignore_ascii_case(STOP) {
        return Ok(MessageKind::Stop);
    }
    let words = trimmed.split(is_blank).filter(|word| !word.is_empty());
    let command = words.enumerate().find(|(at, word)| is_command(*at, word));
    match command {
        None => Ok(MessageKind::Text),
        Some((_, word)) => {
            let shown: String = word.chars().take(32).collect();
            Err(RefusalCause::Command.with(format!(
                "the command `{}` does not pass: only `{STOP}` does; write the message without it",
                shown.escape_default()
            )))
        }
    }
}

/// Returns whether nothing is seen of `c`. OpenClaw may remove such a character before it looks for commands, as JavaScript
/// trims U+FEFF.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control() || is_invisible(c)
}

/// Returns whether the word number `at` of a message may be a command.
fn is_command(at: usize, word: &str) -> bool {
    let name = word.split([':', '=']).next().unwrap_or_default();
    at == 0 && word.starts_with('/') || DIRECTIVES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stop_passes_as_a_command() {
        for text in ["/stop", " /STOP\n", "\u{feff}/stop\u{200b}"] {
            assert_eq!(read_message(text).unwrap(), MessageKind::Stop, "{text}");
        }
        for text in
            ["hello", "look at /etc/hosts", "a/b", "1 / 2", "what does /stop do?", "execute /executable"]
        {
            assert_eq!(read_message(text).unwrap(), MessageKind::Text, "{text}");
        }
        for text in [
            "/exec host=gateway",
            " \n/exec",
            "/",
            "//x",
            "/stop now",
            "hello /exec security=full",
            "now /Elevated:full",
            "do it\n/exec ask=off",
            "/etc/hosts is what?",
            "",
            " ",
            "/new",
            "/model x",
        ] {
            assert!(read_message(text).is_err(), "{text}");
        }
        assert!(read_message(&"x".repeat(MAX_MESSAGE)).is_ok(), "control");
        assert!(read_message(&"x".repeat(MAX_MESSAGE + 1)).is_err());
    }
    #[test]
    fn what_is_not_seen_hides_no_command() {
        for blank in
            ['\u{feff}', '\0', '\u{1b}', '\u{85}', '\u{ad}', '\u{200b}', '\u{2060}', '\u{202e}', '\u{e0001}']
        {
            for text in [format!("{blank}/new"), format!(" {blank} /new"), format!("now{blank}/exec ask=off")]
            {
                assert!(read_message(&text).is_err(), "{text:?}");
            }
            assert!(read_message(&blank.to_string()).is_err(), "{blank:?} is an empty message");
            let harmless = format!("{blank}look at {blank}/etc/hosts");
            assert_eq!(read_message(&harmless).unwrap(), MessageKind::Text, "{harmless:?}");
        }
        assert_eq!(read_message("\u{1f469}\u{200d}\u{1f4bb} a/b").unwrap(), MessageKind::Text, "an emoji");
    }
}
