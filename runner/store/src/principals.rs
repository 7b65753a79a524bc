//! Keeps principals: the people and programs that may use the HTTP API, and the hashes of their tokens.

use std::time::Duration;

use platform_core::{
    budget::Budget,
    id::{AccountId, AgentId, PrincipalId},
};
use platform_runtime::report;
use runner_model::principal::{ApiToken, KeyId, PrincipalRole, TokenHash};
use serde::Serialize;
use sqlx::any::AnyRow;

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{number, optional, parsed, stored_json, time},
};

/// Interval at which the last use of a token is stored.
const USE_INTERVAL: Duration = Duration::from_secs(60);

/// Principal: a person or a program that uses the API for one account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Principal {
    /// Id of the principal.
    pub id: PrincipalId,
    /// Account that pays for its runs.
    pub account: AccountId,
    /// Role, which decides about its rights.
    pub role: PrincipalRole,
    /// Agents that it may run; all if absent.
    pub agents: Option<Vec<AgentId>>,
    /// Repositories that its runs may work on, each an address or its beginning before `*`; if absent, all that its
    /// account may use.
    pub repositories: Option<Vec<String>>,
    /// Limits on each of its runs, beside those of the agent.
    pub limits: Budget,
    /// Public part of its token.
    pub key_id: KeyId,
    /// Time at which it was added.
    #[serde(rename = "created_ms")]
    pub created: UnixMillis,
    /// Time at which it last got another token.
    #[serde(rename = "rotated_ms")]
    pub rotated: Option<UnixMillis>,
    /// Time at which its token was last used, to the minute.
    #[serde(rename = "used_ms")]
    pub used: Option<UnixMillis>,
    /// Time at which it lost the right to use the API.
    #[serde(rename = "revoked_ms")]
    pub revoked: Option<UnixMillis>,
}

/// Principal to add.
#[derive(Debug)]
pub struct NewPrincipal {
    /// Id of the principal, which no other has ever had.
    pub id: PrincipalId,
    /// Account that pays for its runs.
    pub account: AccountId,
    /// Role, which decides about its rights.
    pub role: PrincipalRole,
    /// Agents that it may run; all if absent.
    pub agents: Option<Vec<AgentId>>,
    /// Repositories that its runs may work on, each an address or its beginning before `*`; if absent, all that its
    /// account may use.
    pub repositories: Option<Vec<String>>,
    /// Limits on each of its runs.
    pub limits: Budget,
}

/// Columns of a principal, without the hash of its token.
macro_rules! columns {
    () => {
        "principal, account, role, agents, repositories, limits, key_id, created, rotated, used, revoked"
    };
}

const ADD: &str = "INSERT INTO principals (installation, principal, account, role, agents, repositories, limits, key_id, token_hash, created) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (installation, principal) DO NOTHING";
const FIND: &str =
    concat!("SELECT ", columns!(), " FROM principals WHERE installation = $1 AND principal = $2");
const LIST: &str =
    concat!("SELECT ", columns!(), " FROM principals WHERE installation = $1 ORDER BY principal");
pub(super) const FIND_BY_KEY: &str = concat!(
    "SELECT ",
    columns!(),
    ", token_hash FROM principals WHERE installation = $1 AND key_id = $2 AND revoked IS NULL"
);
const ROTATE: &str = "UPDATE principals SET key_id = $1, token_hash = $2, rotated = $3 \
     WHERE installation = $4 AND principal = $5 AND revoked IS NULL";
const REVOKE: &str = "UPDATE principals SET revoked = COALESCE(revoked, $1) \
     WHERE installation = $2 AND principal = $3";
const RECORD_USE: &str = "UPDATE principals SET used = $1 WHERE installation = $2 AND key_id = $3 \
     AND (used IS NULL OR used <= $4)";
const IS_VALID: &str =
    "SELECT count(*) FROM principals WHERE installation = $1 AND key_id = $2 AND revoked IS NULL";

impl Principal {
    pub(super) fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            id: parsed(row, "principal", |text| PrincipalId::parse(text).ok())?,
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            role: parsed(row, "role", |text| text.parse().ok())?,
            agents: optional(row, "agents", stored_json)?,
            repositories: optional(row, "repositories", stored_json)?,
            limits: parsed(row, "limits", stored_json)?,
            key_id: parsed(row, "key_id", KeyId::parse)?,
            created: UnixMillis(number(row, "created")?),
            rotated: time(row, "rotated")?,
            used: time(row, "used")?,
            revoked: time(row, "revoked")?,
        })
    }

    /// Returns the error for another principal with this id.
    fn id_taken(self) -> Error {
        match self.revoked {
            None => Error::PrincipalExists { principal: self.id },
            Some(_) => Error::PrincipalRevoked { principal: self.id },
        }
    }
}

/// Returns the text of a list, as a column has it.
fn list_text<T: Serialize>(list: Option<&Vec<T>>) -> Option<String> {
    list.map(|list| serde_json::to_string(list).unwrap_or_default())
}

impl Store {
    /// Adds a principal, which `token` identifies from now on.
    ///
    /// # Errors
    /// [`Error::PrincipalExists`] or [`Error::PrincipalRevoked`] if the id is taken. [`Error::ServesAnother`] if the
    /// store serves another host.
    pub async fn add_principal(&self, new: &NewPrincipal, token: &ApiToken) -> Result<Principal, Error> {
        let action = "add a principal";
        let agents = list_text(new.agents.as_ref());
        let repositories = list_text(new.repositories.as_ref());
        let limits = serde_json::to_string(&new.limits).unwrap_or_default();
        self.write(async |mut tx| {
            sqlx::query(ADD)
                .bind(self.installation.as_str())
                .bind(new.id.as_str())
                .bind(new.account.as_str())
                .bind(new.role.name())
                .bind(&agents)
                .bind(&repositories)
                .bind(&limits)
                .bind(token.key_id().as_str())
                .bind(token.hash().to_string())
                .bind(tx.now)
                .execute(tx.connection())
                .await
                .map_err(failed(action))?;
            let principal = self.find_principal(&mut tx, &new.id).await?;
            // An earlier try may have been committed without an answer.
            if principal.key_id != *token.key_id() {
                return Err(principal.id_taken());
            }
            self.check_host(&mut tx).await?;
            tx.finish(action, principal).await
        })
        .await
    }

    /// Returns all principals, in the order of their ids.
    pub async fn principals(&self) -> Result<Vec<Principal>, Error> {
        self.retry(async || {
            let rows = sqlx::query(LIST).bind(self.installation.as_str()).fetch_all(&self.pool).await;
            rows.map_err(failed("list principals"))?.iter().map(Principal::read).collect()
        })
        .await
    }

    /// Replaces the token of a principal by `token`. The former one identifies it no longer.
    ///
    /// # Errors
    /// [`Error::NoPrincipal`] if no principal has this id, [`Error::PrincipalRevoked`] if it was revoked.
    pub async fn rotate_principal(&self, id: &PrincipalId, token: &ApiToken) -> Result<Principal, Error> {
        let action = "rotate the token of a principal";
        self.write(async |mut tx| {
            let rotated = sqlx::query(ROTATE)
                .bind(token.key_id().as_str())
                .bind(token.hash().to_string())
                .bind(tx.now)
                .bind(self.installation.as_str())
                .bind(id.as_str())
                .execute(tx.connection())
                .await
                .map_err(failed(action))?;
            let principal = self.find_principal(&mut tx, id).await?;
            if rotated.rows_affected() == 0 {
                return Err(Error::PrincipalRevoked { principal: id.clone() });
            }
            self.check_host(&mut tx).await?;
            tx.finish(action, principal).await
        })
        .await
    }

    /// Revokes a principal: its token identifies it no longer. A revoked one stays revoked.
    ///
    /// # Errors
    /// [`Error::NoPrincipal`] if no principal has this id.
    pub async fn revoke_principal(&self, id: &PrincipalId) -> Result<Principal, Error> {
        let action = "revoke a principal";
        self.write(async |mut tx| {
            let query = sqlx::query(REVOKE).bind(tx.now).bind(self.installation.as_str()).bind(id.as_str());
            query.execute(tx.connection()).await.map_err(failed(action))?;
            let principal = self.find_principal(&mut tx, id).await?;
            self.check_host(&mut tx).await?;
            tx.finish(action, principal).await
        })
        .await
    }

    /// Returns the principal that `token` identifies; `None` if it identifies none, or a revoked one. Stores its use,
    /// at most once a minute.
    pub async fn authenticate(&self, token: &ApiToken) -> Result<Option<Principal>, Error> {
        self.retry(async || self.authenticate_once(token).await).await
    }

    async fn authenticate_once(&self, token: &ApiToken) -> Result<Option<Principal>, Error> {
        let action = "identify a principal";
        let mut tx = self.begin_with(self.backend.begin_snapshot()).await?;
        let query = sqlx::query(FIND_BY_KEY).bind(self.installation.as_str()).bind(token.key_id().as_str());
        let row = query.fetch_optional(tx.connection()).await.map_err(failed(action))?;
        let now = UnixMillis(tx.now);
        tx.commit(action).await?;
        let Some(row) = row else { return Ok(None) };
        let hash = parsed(&row, "token_hash", TokenHash::parse)?;
        let principal = Principal::read(&row)?;
        if !hash.is_of(token) {
            return Ok(None);
        }
        if principal.used.is_none_or(|used| used.until(now) >= USE_INTERVAL) {
            self.record_use(&principal.key_id, now).await;
        }
        Ok(Some(principal))
    }

    /// Stores the use of a token. The request continues without it.
    async fn record_use(&self, key_id: &KeyId, now: UnixMillis) {
        let before = now.0 - i64::try_from(USE_INTERVAL.as_millis()).unwrap_or(i64::MAX);
        let query = sqlx::query(RECORD_USE).bind(now.0).bind(self.installation.as_str());
        let query = query.bind(key_id.as_str()).bind(before);
        if let Err(error) = query.execute(&self.pool).await {
            tracing::warn!(error = report::chain(&error), key_id = %key_id, "the use of a token was not stored");
        }
    }

    /// Returns whether the token with this key id still identifies a principal.
    pub async fn is_key_valid(&self, key_id: &KeyId) -> Result<bool, Error> {
        self.retry(async || {
            let query = sqlx::query_scalar(IS_VALID).bind(self.installation.as_str()).bind(key_id.as_str());
            let found: i64 = query.fetch_one(&self.pool).await.map_err(failed("check a token"))?;
            Ok(found > 0)
        })
        .await
    }

    async fn find_principal(&self, tx: &mut Tx, id: &PrincipalId) -> Result<Principal, Error> {
        let query = sqlx::query(FIND).bind(self.installation.as_str()).bind(id.as_str());
        let row = query.fetch_optional(tx.connection()).await.map_err(failed("look for a principal"))?;
        row.map_or_else(|| Err(Error::NoPrincipal { principal: id.clone() }), |row| Principal::read(&row))
    }
}
