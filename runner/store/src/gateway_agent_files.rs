//! Keeps the behaviour files of agents in gateways.

use runner_model::behaviour::BehaviourFile;
use sqlx::any::AnyRow;

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    gateway_agents::GatewayAgentKey,
    row::{count, number, parsed, storable, text},
};

const ACTION: &str = "store a behaviour file";
const READ: &str = "read behaviour files";

const PUT: &str = "INSERT INTO gateway_agent_files (installation, gateway, agent, name, content, changed, revision) \
     SELECT $1, $2, $3, $4, $5, $6, revision FROM gateway_agents \
     WHERE gateway_agents.installation = $1 AND gateway_agents.gateway = $2 AND gateway_agents.agent = $3 \
     ON CONFLICT (installation, gateway, agent, name) DO UPDATE SET \
     content = excluded.content, changed = excluded.changed, revision = excluded.revision";
const OF_AGENT: &str =
    "SELECT * FROM gateway_agent_files WHERE installation = $1 AND gateway = $2 AND agent = $3 ORDER BY name";

/// Behaviour file, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBehaviourFile {
    /// Name of the file.
    pub file: BehaviourFile,
    /// Text of the file.
    pub content: String,
    /// Revision of the agent that wrote it.
    pub revision: u64,
    /// Time of its last change.
    pub changed: UnixMillis,
}

/// Outcome of storing a behaviour file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BehaviourFileStored {
    /// The file is stored.
    Stored,
    /// The file was changed since the revision that the text was made from. It is this now; absent if it is empty.
    Conflict(Option<StoredBehaviourFile>),
    /// The agent does not exist, or is being removed.
    Unknown,
}

impl StoredBehaviourFile {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            file: parsed(row, "name", BehaviourFile::of_name)?,
            content: text(row, "content")?,
            revision: count(row, "revision")?,
            changed: UnixMillis(number(row, "changed")?),
        })
    }
}

impl Store {
    /// Stores a behaviour file of an agent in the place of an earlier one. Without `content` its gateway gets an empty file.
    /// If `base` is given, the file must still have that revision; 0 stands for an empty one.
    pub async fn put_behaviour_file(
        &self,
        key: &GatewayAgentKey,
        file: BehaviourFile,
        content: &str,
        base: Option<u64>,
    ) -> Result<BehaviourFileStored, Error> {
        self.write(async |mut tx| {
            // The agent's row is locked from here on. Without a commit it stays as it was.
            if !self.touch_gateway_agent(&mut tx, key).await? {
                return Ok(BehaviourFileStored::Unknown);
            }
            if let Some(base) = base {
                let current = self.behaviour_file(&mut tx, key, file).await?;
                // The same text may have been stored by an earlier try.
                if current.as_ref().map_or("", |current| &current.content) == storable(content) {
                    return Ok(BehaviourFileStored::Stored);
                }
                if current.as_ref().map_or(0, |current| current.revision) != base {
                    return Ok(BehaviourFileStored::Conflict(current));
                }
            }
            let putting = sqlx::query(PUT)
                .bind(self.installation.as_str())
                .bind(key.gateway.as_str())
                .bind(key.agent.as_str())
                .bind(file.name())
                .bind(storable(content))
                .bind(tx.now);
            putting.execute(tx.connection()).await.map_err(failed(ACTION))?;
            tx.finish(ACTION, BehaviourFileStored::Stored).await
        })
        .await
    }

    /// Returns a behaviour file that has a text.
    async fn behaviour_file(
        &self,
        tx: &mut Tx,
        key: &GatewayAgentKey,
        file: BehaviourFile,
    ) -> Result<Option<StoredBehaviourFile>, Error> {
        let query = sqlx::query(OF_AGENT).bind(self.installation.as_str());
        let query = query.bind(key.gateway.as_str()).bind(key.agent.as_str());
        let rows = query.fetch_all(tx.connection()).await.map_err(failed(READ))?;
        let files = rows.iter().map(StoredBehaviourFile::read).collect::<Result<Vec<_>, _>>()?;
        Ok(files.into_iter().find(|stored| stored.file == file && !stored.content.is_empty()))
    }

    /// Returns the behaviour files of an agent, by name.
    pub async fn behaviour_files(&self, key: &GatewayAgentKey) -> Result<Vec<StoredBehaviourFile>, Error> {
        self.retry(async || {
            let query = sqlx::query(OF_AGENT).bind(self.installation.as_str());
            let query = query.bind(key.gateway.as_str()).bind(key.agent.as_str());
            let rows = query.fetch_all(&self.pool).await.map_err(failed(READ))?;
            rows.iter().map(StoredBehaviourFile::read).collect()
        })
        .await
    }
}
