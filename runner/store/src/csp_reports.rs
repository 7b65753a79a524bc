//! Keeps what browsers have reported that the policy of the dashboard's pages blocked. Reports of the same are one row.
//!
//! Anyone who reaches the API may report, so rows are few and end by themselves.

use std::time::Duration;

use serde::Serialize;
use sqlx::any::AnyRow;

use super::{
    Store, UnixMillis,
    browser_sessions::before,
    error::{Error, failed},
    row::{count, number, text},
};

/// Most rows that are kept. The ones that were reported last stay.
pub const KEPT_CSP_REPORTS: usize = 50;
/// Time after which a row ends that was not reported again.
const MAX_REPORT_AGE: Duration = Duration::from_secs(7 * 24 * 3600);

const RECORD: &str = "INSERT INTO csp_reports (installation, directive, blocked, source, page, reports, first, last) \
     VALUES ($1, $2, $3, $4, $5, 1, $6, $6) ON CONFLICT (installation, directive, blocked, source) \
     DO UPDATE SET reports = csp_reports.reports + 1, page = excluded.page, last = excluded.last";
const END_OLD: &str = "DELETE FROM csp_reports WHERE installation = $1 AND (last <= $2 OR last < (\
       SELECT min(last) FROM (SELECT last FROM csp_reports WHERE installation = $1 ORDER BY last DESC LIMIT $3) AS kept))";
const LIST: &str = "SELECT directive, blocked, source, page, reports, last FROM csp_reports \
     WHERE installation = $1 AND last > $2 ORDER BY last DESC, directive, blocked, source LIMIT $3";

/// Report of a browser. The API has bounded its texts to short printable ASCII.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CspReport {
    /// Rule that was broken, such as `script-src-elem`.
    pub directive: String,
    /// Address, or kind of content, that was blocked, such as `inline`.
    pub blocked: String,
    /// File and line that caused it; empty if unknown.
    pub source: String,
    /// Path of the page.
    pub page: String,
}

/// Stored report, with the number of times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredCspReport {
    /// The last of these reports.
    #[serde(flatten)]
    pub report: CspReport,
    /// Number of times that it was reported.
    pub reports: u64,
    /// Time at which it was reported last.
    #[serde(rename = "last_ms")]
    pub last: UnixMillis,
}

impl StoredCspReport {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        let report = CspReport {
            directive: text(row, "directive")?,
            blocked: text(row, "blocked")?,
            source: text(row, "source")?,
            page: text(row, "page")?,
        };
        Ok(Self { report, reports: count(row, "reports")?, last: UnixMillis(number(row, "last")?) })
    }
}

impl Store {
    /// Stores a report. The oldest ends if there are too many.
    ///
    /// # Errors
    /// If the store serves another host.
    pub async fn record_csp_report(&self, report: &CspReport) -> Result<(), Error> {
        let action = "store a browser's report";
        self.write(async |mut tx| {
            let query = sqlx::query(RECORD).bind(self.installation.as_str()).bind(&report.directive);
            let query = query.bind(&report.blocked).bind(&report.source).bind(&report.page).bind(tx.now);
            query.execute(tx.connection()).await.map_err(failed(action))?;
            let end =
                sqlx::query(END_OLD).bind(self.installation.as_str()).bind(before(tx.now, MAX_REPORT_AGE));
            end.bind(most()).execute(tx.connection()).await.map_err(failed(action))?;
            self.check_host(&mut tx).await?;
            tx.commit(action).await
        })
        .await
    }

    /// Returns the reports that have not ended, the last first.
    pub async fn csp_reports(&self) -> Result<Vec<StoredCspReport>, Error> {
        let action = "list browsers' reports";
        self.read(async |mut tx| {
            let query = sqlx::query(LIST).bind(self.installation.as_str());
            let query = query.bind(before(tx.now, MAX_REPORT_AGE)).bind(most());
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(action))?;
            tx.commit(action).await?;
            rows.iter().map(StoredCspReport::read).collect()
        })
        .await
    }
}

fn most() -> i64 {
    i64::try_from(KEPT_CSP_REPORTS).unwrap_or(i64::MAX)
}
