//! Knows the characters of which a reader sees nothing, and those that turn the direction of text.
//!
//! A person who decides about a text of an agent must see all of it. The list is made from Unicode's data, in one place for all
//! programs and the dashboard. Controls (Unicode's category Cc) are not in it: each place has its own way with them.

mod ranges;

use self::ranges::RANGES;

/// Kind of an invisible character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invisible {
    /// Blank between words, of some width. The ordinary space is not among these.
    Space,
    /// Letter or symbol that is blank, such as that of Braille.
    Filler,
    /// Mark, embedding, override or isolate that changes the direction of text.
    Direction,
    /// Joins its neighbours or keeps them apart. Some scripts and emoji need these.
    Joiner,
    /// Chooses a form of the character before it.
    Selector,
    /// Any other of which nothing is seen, ends of lines and paragraphs among them.
    Hidden,
}

/// Returns the kind of `c`; `None` if it is seen, or is a control.
#[must_use]
pub const fn kind_of(c: char) -> Option<Invisible> {
    let mut low = 0;
    let mut high = RANGES.len();
    while low < high {
        let middle = low.midpoint(high);
        let (first, last, kind) = RANGES[middle];
        if c < first {
            high = middle;
        } else if c > last {
            low = middle + 1;
        } else {
            return Some(kind);
        }
    }
    None
}

/// Returns whether `c` is of any kind.
#[must_use]
pub const fn is_invisible(c: char) -> bool {
    kind_of(c).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = include_str!("table.txt");
    const GENERATED: &str = include_str!("ranges.rs");

    fn character(hex: &str) -> char {
        char::from_u32(u32::from_str_radix(hex, 16).unwrap()).unwrap()
    }

    fn kind(word: &str) -> Invisible {
        match word {
            "space" => Invisible::Space,
            "filler" => Invisible::Filler,
            "direction" => Invisible::Direction,
            "joiner" => Invisible::Joiner,
            "selector" => Invisible::Selector,
            "hidden" => Invisible::Hidden,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn the_list_is_that_of_the_table() {
        let mut lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let version = lines.next().unwrap();
        assert!(
            version.starts_with("Unicode ") && GENERATED.contains(&format!("of {version}. ")),
            "{version}"
        );
        let listed = lines.map(|line| {
            let (range, what) = line.split_once(' ').unwrap();
            let (first, last) = range.split_once("..").unwrap();
            (character(first), character(last), kind(what.split(' ').next().unwrap()))
        });
        let listed: Vec<_> = listed.collect();
        for c in '\0'..=char::MAX {
            let expected = listed.iter().find(|(first, last, _)| (*first..=*last).contains(&c));
            assert_eq!(kind_of(c), expected.map(|(.., kind)| *kind), "{c:?}");
        }
    }

    #[test]
    fn known_tricks_are_in_the_list() {
        let ranges = "a0 ad 34f 61c 115f-1160 17b4-17b5 180b-180f 2000-200f 2028-202f 205f-206f 2800 3000 3164 \
            fe00-fe0f feff ffa0 fff0-fffb 1bca0-1bca3 1d173-1d17a e0000-e0fff";
        for range in ranges.split(' ') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            assert!((character(first)..=character(last)).all(is_invisible), "{range}");
        }
        let seen = " a~\u{a1}é日본ا\u{600}\u{2010}\u{2027}\u{fffd}👋\u{1f3fd}\n\t\u{85}";
        assert_eq!(seen.chars().find(|c| is_invisible(*c)), None);
    }
}
