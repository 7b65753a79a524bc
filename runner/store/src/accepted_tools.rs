//! Keeps the definitions of third-party tools that an operator has accepted. The latest one of a tool counts.

use platform_core::id::ToolServerName;
use serde::Serialize;
use sqlx::{Row, any::AnyRow};

use super::{
    Store, UnixMillis,
    error::{Error, failed},
    row::{number, parsed, text},
};

const ACTION: &str = "store the acceptance of a tool";
const READ: &str = "read accepted tools";
const ACCEPT: &str = "INSERT INTO accepted_tools (installation, server, tool, digest, definition, accepted, accepted_by) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (installation, server, tool) DO UPDATE SET \
     digest = excluded.digest, definition = excluded.definition, accepted = excluded.accepted, \
     accepted_by = excluded.accepted_by";
const FIND: &str = "SELECT * FROM accepted_tools WHERE installation = $1 AND server = $2 AND tool = $3";
const ALL: &str = "SELECT * FROM accepted_tools WHERE installation = $1 ORDER BY server, tool";

/// Acceptance of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewAcceptance {
    /// Server of the tool.
    pub server: ToolServerName,
    /// Name of the tool at its server.
    pub tool: String,
    /// Digest of the definition.
    pub digest: String,
    /// Definition, as JSON.
    pub definition: String,
    /// User that accepts it.
    pub by: String,
}

/// Acceptance, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptedTool {
    /// The acceptance.
    #[serde(flatten)]
    pub acceptance: NewAcceptance,
    /// Time at which it was stored.
    #[serde(rename = "accepted_ms")]
    pub accepted: UnixMillis,
}

impl AcceptedTool {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        let acceptance = NewAcceptance {
            server: parsed(row, "server", |text| ToolServerName::parse(text).ok())?,
            tool: text(row, "tool")?,
            digest: text(row, "digest")?,
            definition: row.try_get("definition").map_err(failed(READ))?,
            by: text(row, "accepted_by")?,
        };
        Ok(Self { acceptance, accepted: UnixMillis(number(row, "accepted")?) })
    }
}

impl Store {
    /// Stores an acceptance, in the place of an earlier one of the tool.
    pub async fn accept_tool(&self, new: &NewAcceptance) -> Result<(), Error> {
        self.write(async |mut tx| {
            let accepting = sqlx::query(ACCEPT)
                .bind(self.installation.as_str())
                .bind(new.server.as_str())
                .bind(&new.tool)
                .bind(&new.digest)
                .bind(&new.definition)
                .bind(tx.now)
                .bind(&new.by);
            accepting.execute(tx.connection()).await.map_err(failed(ACTION))?;
            tx.commit(ACTION).await
        })
        .await
    }

    /// Returns the acceptance of a tool, if there is one.
    pub async fn accepted_tool(
        &self,
        server: &ToolServerName,
        tool: &str,
    ) -> Result<Option<AcceptedTool>, Error> {
        self.retry(async || {
            let query = sqlx::query(FIND).bind(self.installation.as_str()).bind(server.as_str()).bind(tool);
            let row = query.fetch_optional(&self.pool).await.map_err(failed(READ))?;
            row.as_ref().map(AcceptedTool::read).transpose()
        })
        .await
    }

    /// Returns all acceptances of the installation, by server and tool.
    pub async fn accepted_tools(&self) -> Result<Vec<AcceptedTool>, Error> {
        self.retry(async || {
            let rows = sqlx::query(ALL).bind(self.installation.as_str()).fetch_all(&self.pool).await;
            rows.map_err(failed(READ))?.iter().map(AcceptedTool::read).collect()
        })
        .await
    }
}
