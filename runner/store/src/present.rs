//! Counts the runs that have not ended, by state, and relays by stage. Not here: waiting runs by priority (`queue`).

use super::{
    Store,
    error::{Error, failed},
    row::{count, text},
};

/// Numbers of the runs that have not ended, and of relays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Present {
    /// Number of runs in each state, by the state's name.
    pub states: Vec<(String, u64)>,
    /// Number of relays in each stage that one is in, by the stage's name.
    pub relays: Vec<(String, u64)>,
}

const PRESENT: &str = "SELECT state, count(*) AS runs FROM runs \
     WHERE installation = $1 AND ended IS NULL GROUP BY state";

const RELAYS: &str = "SELECT stage, count(*) AS relays FROM relays WHERE installation = $1 GROUP BY stage";

impl Store {
    /// Counts the runs of this installation that have not ended, and its relays.
    pub async fn present(&self) -> Result<Present, Error> {
        self.read(async |mut tx| {
            let action = "count runs";
            let query = sqlx::query(PRESENT).bind(self.installation.as_str());
            let rows = query.fetch_all(tx.connection()).await.map_err(failed(action))?;
            let query = sqlx::query(RELAYS).bind(self.installation.as_str());
            let relays = query.fetch_all(tx.connection()).await.map_err(failed(action))?;
            tx.commit(action).await?;
            let relays = relays.iter().map(|row| Ok((text(row, "stage")?, count(row, "relays")?)));
            let states = rows.iter().map(|row| Ok((text(row, "state")?, count(row, "runs")?)));
            Ok(Present {
                states: states.collect::<Result<_, Error>>()?,
                relays: relays.collect::<Result<_, Error>>()?,
            })
        })
        .await
    }
}
