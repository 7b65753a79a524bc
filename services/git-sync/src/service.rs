//! service syncs at the start, after each period and at SIGHUP, and prints a report of each sync.

use std::{
    io::{self, Write as _},
    time::Duration,
};

use platform_core::sync_report::SyncReport;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};

use crate::{error::Error, settings::SyncSettings, sync::Syncer};

/// Delay after a failed sync; it doubles with each failure, up to the period.
const RETRY_DELAY: Duration = Duration::from_secs(5);

/// Signals that a program of this kind understands.
struct SyncSignals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl SyncSignals {
    /// Receives signals from now on. One that comes during a sync leads to one more, however many come.
    fn install() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for a signal that ends the program.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Syncs until a signal ends the program, also in the middle of a sync.
pub(crate) async fn serve(settings: &SyncSettings) -> Result<(), Error> {
    let mut signals = SyncSignals::install().map_err(Error::Signals)?;
    let mut syncer = Syncer::open(settings)?;
    let mut failures = 0;
    loop {
        let report = tokio::select! {
            report = syncer.sync() => report,
            () = signals.stop() => return Ok(()),
        };
        print(&report)?;
        failures = if report.error.is_some() { failures + 1 } else { 0 };
        let SyncSignals { hangup, terminate, interrupt } = &mut signals;
        tokio::select! {
            () = sleep(delay_after(failures, settings.period)) => {}
            _ = hangup.recv() => {}
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        }
    }
}

/// Returns the time until the next sync, after so many failures in a row.
fn delay_after(failures: u32, period: Duration) -> Duration {
    match failures.checked_sub(1) {
        None => period,
        Some(doublings) => RETRY_DELAY.saturating_mul(2u32.saturating_pow(doublings)).min(period),
    }
}

/// Prints a report as one line, for the control plane and for people.
fn print(report: &SyncReport) -> Result<(), Error> {
    let mut line = serde_json::to_vec(report).map_err(|error| Error::Print(error.into()))?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line).and_then(|()| out.flush()).map_err(Error::Print)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_delay_the_next_sync_up_to_the_period() {
        let seconds = |failures, period| delay_after(failures, Duration::from_secs(period)).as_secs();
        assert_eq!([0, 1, 2, 3, 4, 40].map(|failures| seconds(failures, 300)), [300, 5, 10, 20, 40, 300]);
        assert_eq!([0, 1, 9].map(|failures| seconds(failures, 2)), [2, 2, 2], "never later than the period");
    }
}
