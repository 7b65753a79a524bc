//! Reads keys from the bytes of a terminal.

/// Key that the user pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Letter(char),
    Enter,
    Escape,
    Back,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C was pressed.
    Interrupt,
}

const ESCAPE: u8 = 0x1b;

impl Key {
    /// Returns the keys in one read from the terminal. Unknown escape sequences are ignored.
    pub(super) fn all_of(bytes: &[u8]) -> Vec<Self> {
        let mut keys = Vec::new();
        let mut rest = bytes;
        while let [first, after @ ..] = rest {
            rest = match after {
                [b'[' | b'O', sequence @ ..] if *first == ESCAPE => {
                    let is_end = |byte: &u8| matches!(byte, b'@'..=b'~');
                    let len = sequence.iter().position(is_end).map_or(sequence.len(), |at| at + 1);
                    let (sequence, after) = sequence.split_at(len);
                    keys.extend(Self::of_sequence(sequence));
                    after
                }
                _ => {
                    keys.extend(Self::of_byte(*first));
                    after
                }
            };
        }
        keys
    }

    const fn of_byte(byte: u8) -> Option<Self> {
        match byte {
            b'\r' | b'\n' => Some(Self::Enter),
            ESCAPE => Some(Self::Escape),
            0x7f | 0x08 => Some(Self::Back),
            0x03 => Some(Self::Interrupt),
            b' '..=b'~' => Some(Self::Letter(byte as char)),
            _ => None,
        }
    }

    /// Returns the key of an escape sequence, given without its beginning.
    const fn of_sequence(sequence: &[u8]) -> Option<Self> {
        match sequence {
            b"A" => Some(Self::Up),
            b"B" => Some(Self::Down),
            b"H" | b"1~" | b"7~" => Some(Self::Home),
            b"F" | b"4~" | b"8~" => Some(Self::End),
            b"5~" => Some(Self::PageUp),
            b"6~" => Some(Self::PageDown),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_sequences_are_keys() {
        for (bytes, keys) in [
            (&b"\x1b[A"[..], &[Key::Up][..]),
            (b"\x1bOB", &[Key::Down]),
            (b"\x1b[5~\x1b[6~", &[Key::PageUp, Key::PageDown]),
            (b"\x1b[1~\x1b[F", &[Key::Home, Key::End]),
            (b"\x1b", &[Key::Escape]),
            (b"q\x03", &[Key::Letter('q'), Key::Interrupt]),
            (b"\x1b[20~x", &[Key::Letter('x')]),
            (b"\x1a\x00", &[]),
        ] {
            assert_eq!(Key::all_of(bytes), keys, "{bytes:?}");
        }
    }
}
