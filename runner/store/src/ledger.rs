//! Keeps rows of the upstream's ledger, as they were compared with receipts. A row that is read again is compared again,
//! so nothing depends on how often or in which order rows are read.

use platform_core::{
    limit::Millis,
    money::{NanoDollars, SignedNanoDollars},
    record::{LedgerFigures, TokensSource},
    spend::{SpendEnd, SpendKey, SpendRow},
    untrusted::JournalText,
};
use runner_model::{
    receipt::{CallReference, ChargeReason, Correction, ReceiptSource},
    reconciliation::{Charge, Finding, LedgerFigure},
};
use sqlx::any::AnyRow;

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    receipts::{read_call, word},
    row::{count, number, parsed, text},
};

const ACTION: &str = "compare the upstream's ledger with receipts";
/// Selects the receipt of a call, what was charged for it in all, and its cost and number in other rows of the ledger. A reference
/// belongs to one installation, so corrections are looked up by it alone: SQLite would read all of the installation's
/// receipts instead.
pub(super) const FIND: &str = "SELECT installation, account, run, attempt, call_id, nanodollars, charge_reason, tokens_source, called, created, nanodollars + \
     (SELECT CAST(COALESCE(SUM(c.nanodollars), 0) AS BIGINT) FROM receipts c WHERE c.corrects = r.source_reference) \
     AS charged, \
     (SELECT CAST(COALESCE(SUM(l.nanodollars), 0) AS BIGINT) FROM ledger_rows l WHERE l.call_id = r.call_id \
     AND l.installation = r.installation AND l.request_id <> $1 AND l.finding <> 'foreign') AS others, \
     (SELECT COUNT(*) FROM ledger_rows l WHERE l.call_id = r.call_id \
     AND l.installation = r.installation AND l.request_id <> $1 AND l.finding <> 'foreign') AS other_rows \
     FROM receipts r WHERE r.call_id = $2 AND r.source_system = $3";
pub(super) const SAME_ID: &str =
    "SELECT call_id FROM ledger_rows WHERE installation = $1 AND request_id = $2";
const COLLAPSE: &str =
    "UPDATE ledger_rows SET finding = 'collapsed' WHERE installation = $1 AND request_id = $2";
const ADD: &str = "INSERT INTO ledger_rows (installation, request_id, call_id, began, nanodollars, finding, late, account, \
     model, read) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
     ON CONFLICT (installation, request_id, call_id) DO UPDATE SET nanodollars = $5, finding = $6";

/// Time at which an earlier reconciliation looked for rows that were missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EarlierPass {
    /// Time of the first calls that it covered.
    pub from: UnixMillis,
    /// Time at which it began.
    pub began: UnixMillis,
}

/// Conditions under which rows are compared.
#[derive(Debug, Clone, Copy)]
pub struct ComparisonTerms {
    /// Longest time from the end of a call until its row is in the ledger.
    pub delay: Millis,
    /// The reconciliation before this one.
    pub earlier: Option<EarlierPass>,
}

/// Result of comparing rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Findings in rows that were read for the first time.
    pub new: Vec<Finding>,
    /// Corrections that are due.
    pub corrections: Vec<Correction>,
    /// Figures of calls with tokens that are estimated, at least in part: limits count with them.
    pub estimated: Vec<LedgerFigures>,
}

/// Receipt with which a row is compared.
struct ChargedCall {
    call: CallReference,
    charge: Charge,
    /// Sum of the call's receipts.
    charged: SignedNanoDollars,
    tokens_source: TokensSource,
    /// Cost of the call in other rows.
    others: NanoDollars,
    /// Number of those.
    other_rows: u64,
    called: UnixMillis,
    created: UnixMillis,
}

/// Finding about a row.
#[derive(Debug, Clone, Copy)]
struct RowFinding {
    finding: Finding,
    /// True if the row came after its call was counted as missing.
    is_late: bool,
    /// True if the row decides between two costs.
    is_unconfirmed: bool,
}

/// Owner of the receipt that belongs to a row.
enum Charged {
    /// No call that is known here.
    Unknown,
    /// A call of another installation in the same store.
    OfAnotherInstallation,
    /// A call of another account than the row's. Other users of LiteLLM may choose the call ids of their calls.
    OfAnotherAccount,
    Call(Box<ChargedCall>),
}

impl ChargedCall {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        let amount = u64::try_from(number(row, "nanodollars")?).unwrap_or_default();
        Ok(Self {
            call: read_call(row)?,
            charge: Charge {
                amount: NanoDollars(amount),
                reason: parsed(row, "charge_reason", |text| {
                    word(ChargeReason::ALL, ChargeReason::word, text)
                })?,
            },
            charged: SignedNanoDollars(number(row, "charged")?),
            tokens_source: parsed(row, "tokens_source", |text| {
                word(TokensSource::ALL, TokensSource::word, text)
            })?,
            others: NanoDollars(count(row, "others")?),
            other_rows: count(row, "other_rows")?,
            called: UnixMillis(number(row, "called")?),
            created: UnixMillis(number(row, "created")?),
        })
    }

    /// Returns what `row`, with this `figure`, says of a call with estimated tokens; `None` of any other call, and if
    /// another row decides.
    fn figures(&self, row: &SpendRow, figure: LedgerFigure) -> Option<LedgerFigures> {
        let is_estimated = matches!(self.tokens_source, TokensSource::Partial | TokensSource::Estimated);
        let is_free = row.known_cost() == Some(NanoDollars(0));
        let is_other_try = row.end == SpendEnd::Failed && is_free && self.other_rows > 0;
        if !is_estimated || is_other_try || figure.sharers > 0 {
            return None;
        }
        // The tokens of several rows that cost something are not added up.
        let knows_tokens =
            self.others == NanoDollars(0) && row.input.checked_add(row.output) == Some(row.tokens);
        Some(LedgerFigures {
            call_id: self.call.call_id,
            input: knows_tokens.then_some(row.input),
            output: knows_tokens.then_some(row.output),
            cost_nanodollars: figure.cost,
        })
    }

    /// Returns whether the earlier reconciliation counted the call as missing.
    fn was_missing(&self, terms: ComparisonTerms) -> bool {
        terms.earlier.is_some_and(|earlier| {
            self.charge.reason != ChargeReason::NoUsage
                && self.called >= earlier.from
                && self.created.after(terms.delay) < earlier.began
        })
    }
}

impl Store {
    /// Compares rows of the upstream's ledger with receipts, and stores them with the findings.
    pub async fn compare_spend(
        &self,
        rows: &[SpendRow],
        terms: ComparisonTerms,
    ) -> Result<Comparison, Error> {
        self.write(async |mut tx| {
            let mut comparison = Comparison::default();
            for row in rows {
                self.compare_row(&mut tx, row, terms, &mut comparison).await?;
            }
            tx.finish(ACTION, comparison).await
        })
        .await
    }

    async fn compare_row(
        &self,
        tx: &mut Tx,
        row: &SpendRow,
        terms: ComparisonTerms,
        comparison: &mut Comparison,
    ) -> Result<(), Error> {
        let same_id = self.rows_with_id(tx, row).await?;
        let call_id = row.call_id.as_ref().map_or("", JournalText::as_str);
        let sharers = same_id.iter().filter(|other| *other != call_id).count() as u64;
        let is_new = !same_id.iter().any(|other| other == call_id);
        let found = match self.charged(tx, row, call_id).await? {
            Charged::OfAnotherInstallation => return Ok(()),
            // The journal's consumer may be a moment behind.
            Charged::Unknown if UnixMillis(row.began_ms).after(terms.delay).0 > tx.now => return Ok(()),
            Charged::Unknown if row.key == SpendKey::Other => return Ok(()),
            Charged::Unknown | Charged::OfAnotherAccount => {
                RowFinding { finding: Finding::Foreign, is_late: false, is_unconfirmed: false }
            }
            Charged::Call(found) => {
                let figure = LedgerFigure::of(row, found.others, sharers);
                let finding = Finding::of(found.charge, figure);
                comparison.estimated.extend(found.figures(row, figure));
                if let Some(amount) = figure.cost.filter(|cost| {
                    finding != Finding::Collapsed && SignedNanoDollars::from(*cost) != found.charged
                }) {
                    let call = found.call.clone();
                    comparison.corrections.push(Correction { source: ReceiptSource::LiteLlm, call, amount });
                }
                RowFinding {
                    finding,
                    is_late: is_new && found.was_missing(terms),
                    is_unconfirmed: found.charge.reason == ChargeReason::Unconfirmed,
                }
            }
        };
        if is_new {
            comparison.new.push(found.finding);
            comparison.new.extend(found.is_late.then_some(Finding::Late));
            comparison.new.extend(found.is_unconfirmed.then_some(Finding::Unconfirmed));
        }
        self.add_ledger_row(tx, row, found).await?;
        if found.finding == Finding::Collapsed {
            let collapse =
                sqlx::query(COLLAPSE).bind(self.installation.as_str()).bind(row.request_id.as_str());
            collapse.execute(tx.connection()).await.map_err(failed(ACTION))?;
        }
        Ok(())
    }

    /// Returns the call ids of the stored rows that have the same id as `row`.
    async fn rows_with_id(&self, tx: &mut Tx, row: &SpendRow) -> Result<Vec<String>, Error> {
        let found = sqlx::query(SAME_ID).bind(self.installation.as_str()).bind(row.request_id.as_str());
        let found = found.fetch_all(tx.connection()).await.map_err(failed(ACTION))?;
        found.iter().map(|row| text(row, "call_id")).collect()
    }

    async fn charged(&self, tx: &mut Tx, row: &SpendRow, call_id: &str) -> Result<Charged, Error> {
        let found = sqlx::query(FIND)
            .bind(row.request_id.as_str())
            .bind(call_id)
            .bind(ReceiptSource::Journal.word())
            .fetch_optional(tx.connection())
            .await
            .map_err(failed(ACTION))?;
        let Some(found) = found else { return Ok(Charged::Unknown) };
        if text(&found, "installation")? != self.installation.as_str() {
            return Ok(Charged::OfAnotherInstallation);
        }
        // LiteLLM before 1.81 knows no account of some calls.
        let account = text(&found, "account")?;
        if row.account.as_ref().is_some_and(|named| *named != JournalText::of(&account)) {
            return Ok(Charged::OfAnotherAccount);
        }
        ChargedCall::read(&found).map(|call| Charged::Call(Box::new(call)))
    }

    async fn add_ledger_row(&self, tx: &mut Tx, row: &SpendRow, found: RowFinding) -> Result<(), Error> {
        let cost = row.known_cost().map(|cost| i64::try_from(cost.0).unwrap_or(i64::MAX));
        sqlx::query(ADD)
            .bind(self.installation.as_str())
            .bind(row.request_id.as_str())
            .bind(row.call_id.as_ref().map_or("", JournalText::as_str))
            .bind(row.began_ms)
            .bind(cost)
            .bind(found.finding.word())
            .bind(i64::from(found.is_late))
            .bind(row.account.as_ref().map(JournalText::as_str))
            .bind(row.model.as_ref().map(JournalText::as_str))
            .bind(tx.now)
            .execute(tx.connection())
            .await
            .map_err(failed(ACTION))?;
        Ok(())
    }
}
