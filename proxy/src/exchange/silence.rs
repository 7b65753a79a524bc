//! Measures how long a model may have worked without showing any of it.
//!
//! Pure: it receives the times at which text comes, in microseconds from the call's beginning.

/// Wait above which a model is silent, microseconds. A model that shows what it generates pauses less between two pieces.
pub(super) const SILENCE_THRESHOLD_US: u64 = 250_000;

/// Waits of one answer for its text, from the request on. Why text does not come makes no difference: the model thinks,
/// or the client does not read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Silence {
    /// Length of the silence that has ended.
    ended_us: u64,
    /// Beginning of the present wait.
    waits_since_us: u64,
}

impl Silence {
    /// Notes that the request goes upstream.
    pub(super) const fn request_sent(&mut self, now_us: u64) {
        *self = Self { ended_us: 0, waits_since_us: now_us };
    }

    /// Notes that text has come.
    pub(super) const fn text_came(&mut self, now_us: u64) {
        *self = Self { ended_us: self.until(now_us), waits_since_us: now_us };
    }

    /// Returns the length of all silence up to `now_us`, with the present wait.
    pub(super) const fn until(&self, now_us: u64) -> u64 {
        let wait = now_us.saturating_sub(self.waits_since_us);
        if wait > SILENCE_THRESHOLD_US { self.ended_us.saturating_add(wait) } else { self.ended_us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_long_wait_counts_wherever_it_is() {
        const MS: u64 = 1000;
        // The request is sent at 100 ms; text comes at these times; the call ends at the last.
        let table: [(&str, &[u64], u64, u64); 7] = [
            ("before the first text", &[3100], 3150, 3000),
            ("behind the first text", &[110, 3110], 3120, 3000),
            ("behind the last text", &[110, 120], 3120, 3000),
            ("no text", &[], 3100, 3000),
            ("at a model's pace", &[340, 590, 840], 1090, 0),
            ("twice", &[1100, 1110, 2110], 2120, 2000),
            ("at once", &[], 100, 0),
        ];
        for (row, texts, end, silent) in table {
            let mut silence = Silence::default();
            silence.request_sent(100 * MS);
            texts.iter().for_each(|at| silence.text_came(at * MS));
            assert_eq!(silence.until(end * MS), silent * MS, "{row}");
        }
    }
}
