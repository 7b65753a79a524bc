//! Serves corrections of calls by the upstream's ledger.

use hyper::body::Incoming;
use platform_core::record::{CorrectionEffect, LedgerFigures, MAX_CORRECTIONS};

use super::{Control, answer::Error, request::parse_body};
use crate::journal::Corrected;

/// Serves `POST /v1/corrections`. Repeating the same request is harmless.
pub(super) async fn correct(control: &Control, body: Incoming) -> Result<Vec<CorrectionEffect>, Error> {
    let ledger: Vec<LedgerFigures> = parse_body(body, "a list of figures of the ledger").await?;
    if ledger.len() > MAX_CORRECTIONS {
        return Err(Error::Invalid(format!(
            "{} calls, and at most {MAX_CORRECTIONS} at a time",
            ledger.len()
        )));
    }
    let effects: Result<Vec<_>, _> = ledger.iter().map(|figures| correct_call(control, figures)).collect();
    let effects = effects?;
    if effects.contains(&CorrectionEffect::Corrected) {
        control.journal.sync_corrections()?;
    }
    Ok(effects)
}

fn correct_call(control: &Control, ledger: &LedgerFigures) -> Result<CorrectionEffect, Error> {
    Ok(match control.journal.correct(ledger)? {
        Corrected::NotOpen => CorrectionEffect::NotOpen,
        Corrected::Unchanged => CorrectionEffect::Unchanged,
        Corrected::Written(record) => {
            control.runs.correct(&record);
            tracing::debug!(call = %record.litellm_call_id, correction = ?record.correction, "call corrected");
            CorrectionEffect::Corrected
        }
    })
}
