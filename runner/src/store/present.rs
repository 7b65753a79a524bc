//! How many runs there are that have not ended, and where they stand.

use std::time::Duration;

use super::{
    Again, Store, UnixMillis,
    error::{Error, failed},
    row::{count, number, text},
};
use crate::lifecycle::State;

/// Runs that have not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Present {
    /// How many are in each state, by its name.
    pub states: Vec<(String, u64)>,
    /// For how long the one has waited that was ordered first; absent if none waits.
    pub oldest_waits: Option<Duration>,
}

const PRESENT: &str = "SELECT state, count(*) AS runs, min(created) AS oldest FROM runs \
     WHERE installation = $1 AND ended IS NULL GROUP BY state";

impl Store {
    /// Runs that have not ended, of this installation, whoever works on them.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn present(&self) -> Result<Present, Error> {
        self.retrying(Again::Always, async |_| {
            let action = "count runs";
            let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
            let query = sqlx::query(PRESENT).bind(self.installation.as_str());
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(action))?;
            let now = UnixMillis(tx.now);
            tx.commit(action).await?;
            let mut present = Present::default();
            for row in &rows {
                let state = text(row, "state")?;
                if state == State::Queued.name() {
                    present.oldest_waits = Some(UnixMillis(number(row, "oldest")?).until(now));
                }
                present.states.push((state, count(row, "runs")?));
            }
            Ok(present)
        })
        .await
    }
}
