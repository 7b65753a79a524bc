//! Computes the minimum, the quartiles and the median of a figure over rounds.

use serde::Serialize;

/// Distribution of a figure over rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Quartiles {
    /// Lowest value: the cost with the least disturbance.
    pub min: f64,
    /// Value below which a quarter of the rounds lie.
    pub q1: f64,
    /// Value below which half of the rounds lie.
    pub median: f64,
    /// Value below which three quarters of the rounds lie.
    pub q3: f64,
}

impl Quartiles {
    /// Returns the distribution of `values`; zeros if there are none.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |quarters| interpolate(&values, quarters);
        Self { min: at(0), q1: at(1), median: at(2), q3: at(3) }
    }
}

/// Returns the value at so many quarters of the sorted values, between two of them in proportion.
fn interpolate(sorted: &[f64], quarters: usize) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = last * quarters;
    let below = sorted[position / 4];
    let above = sorted[(position / 4 + 1).min(last)];
    below + (above - below) * (position % 4) as f64 / 4.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_lie_between_rounds_in_proportion() {
        let of = |values: &[f64]| {
            let Quartiles { min, q1, median, q3 } = Quartiles::of(values.to_vec());
            [min, q1, median, q3]
        };
        assert_eq!(of(&[5.0, 1.0, 4.0, 2.0, 3.0]), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(of(&[4.0, 1.0, 2.0, 3.0]), [1.0, 1.75, 2.5, 3.25]);
        assert_eq!(of(&[7.0]), [7.0; 4]);
        assert_eq!(of(&[]), [0.0; 4]);
    }
}
