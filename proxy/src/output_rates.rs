//! Learns how fast models generate, from calls with exactly known tokens.
//!
//! Calls that end early are booked by it: what a model may have generated unseen. Only rates above
//! [`LEAST_RATE`] are kept, so that calls at a usual pace touch nothing shared. The journal keeps them over restarts: in
//! its sums, and in the records of the calls behind those.

use std::{
    collections::{BTreeMap, HashMap},
    time::{Duration, UNIX_EPOCH},
};

use platform_core::{record::ExchangeRecord, untrusted::JournalText};
use platform_runtime::sync::Mutex;
use serde::{Deserialize, Serialize};

/// Tokens a second that each model may generate, as long as nothing faster is known: more than large models do.
pub(crate) const LEAST_RATE: u64 = 200;
/// Most models with separate rates. All others share one rate, so that no agent can occupy memory with names.
const MAX_MODELS: usize = 1024;
/// Name under which the others share it; no call asks for a model without a name.
const OTHERS: &str = "";

const SECONDS_PER_HOUR: u64 = 3600;
const HOURS: usize = 24;

/// Highest rates of the last day, in tokens a second of one answer, by the model that calls ask for.
#[derive(Debug, Default)]
pub(crate) struct OutputRates(Mutex<HashMap<Box<str>, LastDay>>);

/// Highest rate of each hour of the last day.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LastDay {
    rates: [u64; HOURS],
    /// Hour since the epoch of the last change.
    hour: u64,
}

impl LastDay {
    fn note(&mut self, rate: u64, hour: u64) {
        self.forget_before(hour);
        let highest = &mut self.rates[slot(hour)];
        *highest = rate.max(*highest);
    }

    fn highest(&mut self, hour: u64) -> u64 {
        self.forget_before(hour);
        self.rates.into_iter().fold(0, u64::max)
    }

    /// Empties the slots of the hours that have begun since the last change. A clock that was set back changes none.
    fn forget_before(&mut self, hour: u64) {
        let begun = hour.saturating_sub(self.hour).min(HOURS as u64);
        (0..begun).for_each(|ago| self.rates[slot(hour - ago)] = 0);
        self.hour = self.hour.max(hour);
    }
}

fn slot(hour: u64) -> usize {
    usize::try_from(hour % HOURS as u64).unwrap_or_default()
}

const fn hour_of(now: Duration) -> u64 {
    now.as_secs() / SECONDS_PER_HOUR
}

impl OutputRates {
    /// Notes that `model` has generated an answer at `rate`. `now` reads the time since the epoch, for a rate that is kept.
    pub(crate) fn note(&self, model: &str, rate: u64, now: impl FnOnce() -> Duration) {
        if rate <= LEAST_RATE {
            return;
        }
        let hour = hour_of(now());
        let mut models = self.0.lock();
        let name = if models.contains_key(model) || models.len() < MAX_MODELS { model } else { OTHERS };
        match models.get_mut(name) {
            Some(day) => day.note(rate, hour),
            None => models.entry(name.into()).or_default().note(rate, hour),
        }
    }

    /// Notes the rate of a call that an earlier proxy has recorded.
    pub(crate) fn note_record(&self, record: &ExchangeRecord) {
        let Some(rate) = record.output_rate else { return };
        let Ok(began) = humantime::parse_rfc3339(&record.ts) else { return };
        let model = record.model_asked.as_ref().map_or("", JournalText::as_str);
        self.note(model, rate, || began.duration_since(UNIX_EPOCH).unwrap_or_default());
    }

    /// Returns the rates of all models, for [`OutputRates::restore`].
    pub(crate) fn all(&self) -> BTreeMap<Box<str>, LastDay> {
        self.0.lock().iter().map(|(model, day)| (model.clone(), day.clone())).collect()
    }

    /// Restores rates that an earlier proxy has learned.
    pub(crate) fn restore(&self, rates: BTreeMap<Box<str>, LastDay>) {
        self.0.lock().extend(rates.into_iter().take(MAX_MODELS));
    }

    /// Returns the tokens a second that `model` may generate.
    pub(crate) fn of(&self, model: &str, now: Duration) -> u64 {
        let mut models = self.0.lock();
        let name = if models.contains_key(model) { model } else { OTHERS };
        models.get_mut(name).map_or(0, |day| day.highest(hour_of(now))).max(LEAST_RATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hour: u64) -> Duration {
        Duration::from_secs(1_700_000_000 + hour * SECONDS_PER_HOUR)
    }

    #[test]
    fn the_highest_rate_of_a_day_holds() {
        let rates = OutputRates::default();
        assert_eq!(rates.of("m", at(0)), LEAST_RATE, "nothing is known");
        rates.note("m", 900, || at(0));
        rates.note("m", 300, || at(5));
        rates.note("m", 50, || at(6));
        assert_eq!((rates.of("m", at(6)), rates.of("m", at(23))), (900, 900));
        assert_eq!(rates.of("other", at(6)), LEAST_RATE);
        assert_eq!((rates.of("m", at(24)), rates.of("m", at(28))), (300, 300));
        assert_eq!((rates.of("m", at(29)), rates.of("m", at(500))), (LEAST_RATE, LEAST_RATE));
        rates.note("m", 700, || at(500));
        assert_eq!(rates.of("m", at(490)), 700, "a clock that is set back forgets nothing");
    }

    #[test]
    fn names_beyond_the_most_share_a_rate() {
        let rates = OutputRates::default();
        (0..MAX_MODELS).for_each(|n| rates.note(&format!("m{n}"), 300, || at(0)));
        rates.note("one more", 900, || at(0));
        assert_eq!(rates.0.lock().len(), MAX_MODELS + 1);
        assert_eq!((rates.of("one more", at(0)), rates.of("m7", at(0))), (900, 300));
    }
}
