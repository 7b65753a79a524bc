//! Reads what a list shows of runs beside their rows: questions, queue positions and published relays. One statement for a page.

use std::collections::BTreeMap;

use platform_core::id::RunId;
use sqlx::{AssertSqlSafe, Row, any::AnyRow};

use super::{
    Run, Store, StoredRelay,
    error::{Error, failed},
    queue::waiting,
    row::{count, parsed},
};

/// Facts about a run that its own row does not hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFacts {
    /// Number of runs of the same account and priority that are claimed earlier; absent if the run does not wait.
    pub ahead: Option<u64>,
    /// Relay of the run's attempt, once its commits are published.
    pub published: Option<StoredRelay>,
    /// Beginning of the question; absent for runs of earlier schemas, and once the texts of the run were removed.
    pub question: Option<String>,
}

/// All waiting runs are numbered once: counting the earlier ones of each run would read the queue for each row.
const FACTS: &str = concat!(
    "SELECT runs.run AS listed, runs.question_start, numbered.ahead, relays.* FROM runs \
     LEFT JOIN relays ON relays.run = runs.run AND relays.attempt = runs.attempt AND relays.stage = 'published' \
     LEFT JOIN (SELECT run, row_number() OVER (PARTITION BY account, priority ORDER BY queued, run) - 1 AS ahead \
     FROM runs WHERE ",
    waiting!("$1"),
    ") AS numbered ON numbered.run = runs.run WHERE runs.installation = $1 AND runs.run IN "
);

impl Store {
    /// Returns the facts about each of `runs`.
    pub async fn list_facts(&self, runs: &[Run]) -> Result<BTreeMap<RunId, ListFacts>, Error> {
        let action = "read what a list shows of runs";
        if runs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let places: Vec<_> = (2..=runs.len() + 1).map(|number| format!("${number}")).collect();
        let statement = format!("{FACTS}({})", places.join(", "));
        self.retry(async || {
            let mut query = sqlx::query(AssertSqlSafe(statement.clone())).bind(self.installation.as_str());
            for run in runs {
                query = query.bind(run.run_id.as_str());
            }
            let rows = query.fetch_all(&self.pool).await.map_err(failed(action))?;
            rows.iter()
                .map(|row| Ok((parsed(row, "listed", |id| RunId::parse(id).ok())?, read(row)?)))
                .collect()
        })
        .await
    }
}

fn read(row: &AnyRow) -> Result<ListFacts, Error> {
    let ahead: Option<i64> = row.try_get("ahead").map_err(failed("read a row"))?;
    let relay: Option<String> = row.try_get("document").map_err(failed("read a row"))?;
    Ok(ListFacts {
        ahead: ahead.map(|_number| count(row, "ahead")).transpose()?,
        question: row.try_get("question_start").map_err(failed("read a row"))?,
        published: relay.map(|_document| StoredRelay::read(row)).transpose()?,
    })
}
