//! Quotes names and texts that agents choose: as git writes them in a diff, or for people to read.

use platform_core::invisible::is_invisible;

/// Form in which bytes outside ASCII are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// As git does by default: every such byte is an octal escape.
    Git,
    /// Letters stay readable. Characters that could control a terminal, or that its reader does not see or takes for a
    /// space, are escapes: so two names that differ look different.
    Readable,
}

/// Returns `bytes` in C-style quotes if a byte needs an escape, and unchanged otherwise.
pub(crate) fn quoted(bytes: &[u8], quoting: Quoting) -> String {
    let mut text = String::with_capacity(bytes.len());
    let mut is_plain = true;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            is_plain &= push(&mut text, character, quoting);
        }
        for byte in chunk.invalid() {
            push_octal(&mut text, *byte);
            is_plain = false;
        }
    }
    if is_plain { text } else { format!("\"{text}\"") }
}

/// Appends `character`, and returns whether it could stay as it is.
fn push(text: &mut String, character: char, quoting: Quoting) -> bool {
    if let Some(escape) = short_escape(character) {
        text.push('\\');
        text.push(escape);
        return false;
    }
    let stays = match quoting {
        Quoting::Git => matches!(character, ' '..='~'),
        Quoting::Readable => is_readable(character),
    };
    if stays {
        text.push(character);
    } else {
        character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| push_octal(text, byte));
    }
    stays
}

const fn short_escape(character: char) -> Option<char> {
    Some(match character {
        '\x07' => 'a',
        '\x08' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\x0b' => 'v',
        '\x0c' => 'f',
        '\r' => 'r',
        '"' => '"',
        '\\' => '\\',
        _ => return None,
    })
}

fn push_octal(text: &mut String, byte: u8) {
    text.push('\\');
    for shift in [6, 3, 0] {
        text.push(char::from(b'0' + (byte >> shift & 7)));
    }
}

/// Returns whether a terminal shows `character` as itself, in its place.
fn is_readable(character: char) -> bool {
    !character.is_control() && !is_invisible(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cases from git's own `quote_c_style`, with the texts that git 2.47 prints for them.
    #[test]
    fn names_are_quoted_as_git_does() {
        for (name, git, readable) in [
            (&b"plain name.rs"[..], "plain name.rs", "plain name.rs"),
            ("ä".as_bytes(), r#""\303\244""#, "ä"),
            (b"a\nb\tc", r#""a\nb\tc""#, r#""a\nb\tc""#),
            (br#"a"b\c"#, r#""a\"b\\c""#, r#""a\"b\\c""#),
            (b"\x1b[2J", r#""\033[2J""#, r#""\033[2J""#),
            ("a\u{202e}b".as_bytes(), r#""a\342\200\256b""#, r#""a\342\200\256b""#),
            ("a\u{202f}b\u{a0}".as_bytes(), r#""a\342\200\257b\302\240""#, r#""a\342\200\257b\302\240""#),
            (b"\xff\x00", r#""\377\000""#, r#""\377\000""#),
        ] {
            assert_eq!(quoted(name, Quoting::Git), git);
            assert_eq!(quoted(name, Quoting::Readable), readable);
        }
    }
}
