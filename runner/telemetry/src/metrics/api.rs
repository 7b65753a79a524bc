//! Counts the requests of the HTTP API and times their answers.

use std::time::Duration;

use platform_runtime::metrics::{Bound, Exposition, Histograms, Kind};

use super::micros;

/// Bounds of answer times: from a read of the store to a handler that runs out of time.
const BOUNDS: [Bound; 9] = [
    (1_000, "0.001"),
    (5_000, "0.005"),
    (20_000, "0.02"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (500_000, "0.5"),
    (2_000_000, "2"),
    (10_000_000, "10"),
    (30_000_000, "30"),
];

/// Classes of statuses, by their first digit.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

/// Histograms of answer times by class of status.
#[derive(Debug)]
pub(super) struct ApiTimes(Histograms);

impl Default for ApiTimes {
    fn default() -> Self {
        Self(Histograms::new(CLASSES.len(), &BOUNDS))
    }
}

impl ApiTimes {
    /// Counts an answer that began after `time`. A status that is of no class counts as a failure.
    pub(super) fn answered(&self, status: u16, time: Duration) {
        let class = usize::from(status / 100).checked_sub(2).filter(|class| *class < CLASSES.len());
        self.0.observe(class.unwrap_or(CLASSES.len() - 1), micros(time));
    }

    pub(super) fn render(&self, text: &mut Exposition) {
        let help = "Time from the head of an API request to the head of its answer, by class of status; scrapes and pages are left out.";
        let mut family = text.family(Kind::Histogram, "sluice_api_request_seconds", help);
        for (index, class) in CLASSES.into_iter().enumerate() {
            family.histogram(&[("status", class)], &self.0.read(index));
        }
    }
}
