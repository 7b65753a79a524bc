//! Counts durations of any number of calls in little memory. Percentiles are at most one per cent above the true value.

use std::collections::BTreeMap;

/// Buckets for each power of two. The width of a bucket is at most 1/128 of any value in it.
const BUCKETS_PER_POWER: u64 = 128;

/// Approximate counts of values.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    buckets: BTreeMap<u16, u64>,
    count: u64,
    largest: u64,
}

impl Histogram {
    pub(crate) fn add(&mut self, value: u64) {
        *self.buckets.entry(bucket_of(value)).or_default() += 1;
        self.count += 1;
        self.largest = self.largest.max(value);
    }

    /// Returns the least value that at least `per_cent` per cent of the values do not exceed. Returns `None` without
    /// values.
    pub fn percentile(&self, per_cent: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(per_cent)).div_ceil(100).max(1);
        let mut counted = 0;
        for (bucket, count) in &self.buckets {
            counted += u128::from(*count);
            if counted >= rank {
                return Some(largest_in(*bucket).min(self.largest));
            }
        }
        None
    }
}

/// Returns the number of the bucket that counts `value`.
fn bucket_of(value: u64) -> u16 {
    let power = u64::from((value / BUCKETS_PER_POWER).checked_ilog2().map_or(0, |power| power + 1));
    let within = if power == 0 { value } else { (value >> (power - 1)) - BUCKETS_PER_POWER };
    u16::try_from(power * BUCKETS_PER_POWER + within).unwrap_or(u16::MAX)
}

/// Returns the largest value of a bucket.
fn largest_in(bucket: u16) -> u64 {
    let power = u64::from(bucket) / BUCKETS_PER_POWER;
    let within = u64::from(bucket) % BUCKETS_PER_POWER;
    match power.checked_sub(1) {
        None => within,
        Some(shift) => ((BUCKETS_PER_POWER + within) << shift) + ((1 << shift) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_within_one_per_cent() {
        for value in
            (0..2000).chain((11..64).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 7]))
        {
            let end = largest_in(bucket_of(value));
            assert!(value <= end && end - value <= value / 100, "{value}: {end}");
        }
        assert_eq!(largest_in(bucket_of(u64::MAX)), u64::MAX);
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(50), None);
        let values: Vec<u64> = (1..=1000).map(|n| n * n).collect();
        values.iter().rev().for_each(|value| histogram.add(*value));
        for per_cent in [1, 50, 90, 99, 100] {
            let exact = values[usize::try_from(per_cent * 10).unwrap() - 1];
            let reported = histogram.percentile(per_cent).unwrap();
            assert!(
                exact <= reported && reported <= exact + exact / 100,
                "p{per_cent}: {reported}, not {exact}"
            );
        }
    }
}
