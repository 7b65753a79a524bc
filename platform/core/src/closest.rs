//! Finds the name that a person probably meant.

/// Most edits between a wrong name and the one that was probably meant.
const MAX_EDITS: usize = 3;

/// Returns the one of `known` that is closest to `name`, if it is close: at most three edits, and at most half of it.
#[must_use]
pub fn find_closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let max_edits = MAX_EDITS.min(name.chars().count() / 2);
    let nearest = known.into_iter().map(|other| (count_edits(name, other), other)).min()?;
    (nearest.0 <= max_edits).then_some(nearest.1)
}

/// Returns the question for the one of `known` that is close to `name`, to follow the name; empty if none is.
#[must_use]
pub fn suggest_closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    find_closest(name, known).map(|name| format!(" (did you mean {name}?)")).unwrap_or_default()
}

/// Returns how many characters have to be added, removed or replaced to make one text of the other.
fn count_edits(one: &str, other: &str) -> usize {
    let other: Vec<_> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, from) in one.chars().enumerate() {
        let mut diagonal = line;
        row[0] = line + 1;
        for (column, to) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        for (one, other, expected) in [("", "", 0), ("a", "", 1), ("abc", "axc", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(count_edits(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn a_close_name_is_found_and_a_far_one_is_not() {
        let known = ["gpt-5", "gpt-5-mini", "o3"];
        for (name, expected) in [
            ("gpt-5-mni", Some("gpt-5-mini")),
            ("gtp-5", Some("gpt-5")),
            ("o4", Some("o3")),
            ("", None),
            ("x", None),
            ("claude", None),
        ] {
            assert_eq!(find_closest(name, known), expected, "{name}");
        }
        assert_eq!(find_closest("gpt-5", []), None);
    }
}
