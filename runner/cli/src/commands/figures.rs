//! Formats sums of cost and tokens, and marks those that are not exact.

/// Legend of the marks, for the helps of the commands that print them.
macro_rules! legend {
    () => {
        "\
`~` marks tokens that are partly estimated. `+` marks a cost that is known for some calls only;
`-` means that it is known for none."
    };
}

pub(super) use legend;
use platform_core::{control::InexactCalls, money::NanoDollars};

/// Formats the known part of a cost: `-` if nothing of it is known, with `+` if calls of unknown cost come on top.
pub(super) fn cost(known: NanoDollars, inexact: InexactCalls) -> String {
    match (inexact.unpriced, known) {
        (0, _) => known.to_string(),
        (_, NanoDollars(0)) => "-".to_owned(),
        _ => format!("{known}+"),
    }
}

/// Formats a number of tokens, with `~` if some of them are estimated.
pub(super) fn tokens(count: u64, inexact: InexactCalls) -> String {
    if inexact.estimated == 0 { count.to_string() } else { format!("~{count}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_cost_is_no_zero() {
        let known =
            |unpriced, nanodollars| cost(NanoDollars(nanodollars), InexactCalls { unpriced, estimated: 9 });
        assert_eq!([known(0, 0), known(0, 5_000_000)], ["$0.00", "$0.005"]);
        assert_eq!([known(1, 0), known(1, 5_000_000)], ["-", "$0.005+"]);
    }

    #[test]
    fn estimated_tokens_are_marked() {
        let counted = |estimated| tokens(7, InexactCalls { unpriced: 9, estimated });
        assert_eq!([counted(0), counted(1)], ["7", "~7"]);
    }
}
