//! Writes numbers of things in words.

use std::fmt::Display;

/// Returns `count` and `noun`, in the plural unless there is one: `1 call`, `2 calls`.
pub(crate) fn counted(count: impl Display, noun: &str) -> String {
    let count = count.to_string();
    let ending = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_thing_is_singular() {
        assert_eq!(
            [0, 1, 2, 11].map(|count| counted(count, "call")),
            ["0 calls", "1 call", "2 calls", "11 calls"]
        );
    }
}
