//! Finds the call that `sluice audit show` explains: by its id, or as the last one that failed in a run.

use std::str::FromStr;

use memchr::memmem::Finder;
use platform_core::{
    id::{CallId, RunId},
    invalid::InvalidValue,
    record::{ExchangeRecord, Kind, Outcome},
};
use runner_control_client::{DataPlane, Follow};

use super::{entry, record};
use crate::commands::{
    Error,
    error::{Misused, Unknown},
    run_reference::RunReference,
};

/// Least number of digits of an end. Fewer digits would often match several calls.
const MIN_DIGITS: usize = 8;
/// Length of a whole id, with its dashes.
const ID_LEN: usize = 36;

/// Choice of one call of the journal.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub(super) struct CallChoice {
    /// Id of the call, as in records and in `x-litellm-call-id` of answers, or its end as `sluice audit tail` shows it
    #[arg(value_name = "CALL")]
    call: Option<CallEnd>,
    /// Show the last failed or refused call of this run, or its last call if none failed
    #[arg(long, value_name = "RUN")]
    run: Option<RunReference>,
    /// The same, of the run that made the newest call
    #[arg(long)]
    last: bool,
}

/// End of a call's id, or all of it.
#[derive(Debug, Clone)]
struct CallEnd(String);

impl FromStr for CallEnd {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-');
        if (MIN_DIGITS..=ID_LEN).contains(&text.len()) && text.bytes().all(is_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("expected a call id, or at least the last {MIN_DIGITS} digits of one").into())
        }
    }
}

impl CallChoice {
    /// Returns the line of the chosen call.
    ///
    /// # Errors
    /// If the journal has no such call, several calls have the given end, or the proxy fails.
    pub(super) async fn line(&self, data_plane: &DataPlane) -> Result<Vec<u8>, Error> {
        let found = match (&self.call, &self.run) {
            (Some(call), _) => find(data_plane, call).await?,
            (None, Some(run)) => last_failure(data_plane, &run.in_journal(data_plane).await?).await?,
            (None, None) => match newest_run(data_plane).await? {
                Some(run_id) => last_failure(data_plane, &run_id).await?,
                None => None,
            },
        };
        found.ok_or_else(|| {
            Error::from(Unknown(format!(
                "the journal has {}; a call in flight gets its record when it ends, `sluice audit tail` shows the latest",
                self.missing()
            )))
        })
    }

    /// Returns the words for what the journal does not have.
    fn missing(&self) -> String {
        match (&self.call, &self.run) {
            (Some(call), _) => format!("no call {}", call.0),
            (None, Some(run)) => format!("no call of run {run}"),
            (None, None) => "no call".to_owned(),
        }
    }
}

/// Finds the line of the call. Reads the whole journal for the end of an id, because several calls may share that end.
async fn find(data_plane: &DataPlane, call: &CallEnd) -> Result<Option<Vec<u8>>, Error> {
    let finder = Finder::new(&call.0);
    let mut found: Option<(CallId, Vec<u8>)> = None;
    let mut lines = data_plane.journal(None, Follow::UntilEnd).await?;
    while let Some(line) = lines.next().await? {
        // Parsing is slow, so lines without the text are skipped first.
        if finder.find(line).is_none() {
            continue;
        }
        let ExchangeRecord { litellm_call_id: id, kind, .. } = record(line)?.record;
        if kind == Kind::Correction || !id.to_string().ends_with(&call.0) {
            continue;
        }
        if let Some((other, _)) = found {
            return Err(Error::from(Misused(format!(
                "{} is the end of several calls: {other}, {id}",
                call.0
            ))));
        }
        found = Some((id, line.to_vec()));
        if call.0.len() == ID_LEN {
            break;
        }
    }
    Ok(found.map(|(_, line)| line))
}

/// Returns the line of the last call of `run` that failed, or of its last call.
async fn last_failure(data_plane: &DataPlane, run: &RunId) -> Result<Option<Vec<u8>>, Error> {
    let mut any = None;
    let mut failed = None;
    let mut lines = data_plane.journal(None, Follow::UntilEnd).await?;
    while let Some(line) = lines.next().await? {
        let entry = entry(line)?;
        if entry.run_id() != run.as_str() || entry.kind == Kind::Correction {
            continue;
        }
        if entry.is_error() || entry.outcome == Outcome::Refused {
            failed = Some(line.to_vec());
        }
        any = Some(line.to_vec());
    }
    Ok(failed.or(any))
}

/// Returns the run of the newest call. Trial runs of `sluice doctor` do not count.
pub(super) async fn newest_run(data_plane: &DataPlane) -> Result<Option<RunId>, Error> {
    let mut newest = None;
    let mut lines = data_plane.journal(None, Follow::UntilEnd).await?;
    while let Some(line) = lines.next().await? {
        let entry = entry(line)?;
        if entry.account() != crate::doctor::ACCOUNT && entry.kind != Kind::Correction {
            newest = RunId::parse(entry.run_id()).ok();
        }
    }
    Ok(newest)
}
