//! Colours text for a person at a terminal. Elsewhere, and with `NO_COLOR`, text stays plain.

use std::io::IsTerminal;

use platform_core::name;
use platform_runtime::config::Environment;

/// Look of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Bold,
    Good,
    Bad,
    /// Row under the cursor.
    Selected,
}

/// Colours of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Palette {
    Coloured,
    Plain,
}

impl Palette {
    /// Returns the colours of `output`. See <https://no-color.org>.
    pub(super) fn of(output: &impl IsTerminal, environment: &Environment) -> Self {
        if output.is_terminal() && environment.get(name::env::NO_COLOR).is_none() {
            Self::Coloured
        } else {
            Self::Plain
        }
    }

    /// Returns `text` in `tone`. The text must not contain escape sequences.
    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        let sequence = match (self, tone) {
            // The cursor has to be seen without colours, too. Inverse video is not a colour.
            (_, Tone::Selected) => "7",
            (Self::Plain, _) | (_, Tone::Plain) => return text.to_owned(),
            (Self::Coloured, Tone::Bold) => "1",
            (Self::Coloured, Tone::Good) => "32",
            (Self::Coloured, Tone::Bad) => "31",
        };
        format!("\x1b[{sequence}m{text}\x1b[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_coloured_output_has_colours() {
        assert_eq!(Palette::Coloured.paint(Tone::Bad, "broken"), "\x1b[31mbroken\x1b[0m");
        assert_eq!(Palette::Plain.paint(Tone::Bad, "broken"), "broken");
        assert_eq!(Palette::Plain.paint(Tone::Selected, "row"), "\x1b[7mrow\x1b[0m");
    }
}
