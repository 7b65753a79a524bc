//! Defines the refusal of an order because the queue is full.

use std::{fmt, time::Duration};

use platform_core::id::AccountId;
use serde_json::{Value, json};

/// Bound that is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueBound {
    /// The bound of the installation.
    All,
    /// The bound of an account.
    Account(AccountId),
}

impl QueueBound {
    /// Returns the name of the setting that sets the bound.
    #[must_use]
    pub const fn setting(&self) -> &'static str {
        match self {
            Self::All => "worker.max_queued",
            Self::Account(_) => "worker.max_queued_per_account",
        }
    }
}

/// Refusal of an order because the queue is full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFull {
    /// Bound that is reached.
    pub bound: QueueBound,
    /// Number of waiting runs within the bound.
    pub waiting: u64,
    /// Number of runs that may wait within the bound.
    pub most: u32,
    /// Number of runs that were claimed in the last five minutes, within the same bound.
    pub lately: u64,
    /// Delay before another try, in whole seconds, between a second and five minutes. It is based on the rate of recent
    /// claims.
    pub retry_after: Duration,
}

impl QueueFull {
    /// Returns the refusal as fields, for programs.
    #[must_use]
    pub fn json(&self) -> Value {
        let account = match &self.bound {
            QueueBound::All => None,
            QueueBound::Account(account) => Some(account),
        };
        json!({
            "code": "queue_full",
            "message": self.to_string(),
            "setting": self.bound.setting(),
            "account": account,
            "waiting": self.waiting,
            "most": self.most,
            "taken_lately": self.lately,
            "retry_after_s": self.retry_after.as_secs(),
        })
    }
}

impl fmt::Display for QueueFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bound, waiting, most, lately, retry_after } = self;
        match bound {
            QueueBound::All => f.write_str("the queue is full")?,
            QueueBound::Account(account) => write!(f, "account {account} has its part of the queue")?,
        }
        let setting = bound.setting();
        write!(f, ": {waiting} runs wait, and {setting} lets {most}; ")?;
        match lately {
            0 => f.write_str("none was claimed in the last five minutes (is `sluice up` running?)")?,
            1 => f.write_str("one was claimed in the last five minutes")?,
            more => write!(f, "{more} were claimed in the last five minutes")?,
        }
        write!(f, "; try again in {} s, or raise {setting}", retry_after.as_secs())
    }
}

impl std::error::Error for QueueFull {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_full_and_how_to_fix_it() {
        let account = QueueBound::Account(AccountId::parse("acct-1").unwrap());
        let retry_after = Duration::from_secs(24);
        let full = QueueFull { bound: account, waiting: 250, most: 250, lately: 10, retry_after };
        assert_eq!(
            full.to_string(),
            "account acct-1 has its part of the queue: 250 runs wait, and worker.max_queued_per_account lets 250; \
             10 were claimed in the last five minutes; try again in 24 s, or raise worker.max_queued_per_account"
        );
        let json = full.json();
        assert_eq!((&json["retry_after_s"], &json["account"]), (&json!(24), &json!("acct-1")));
        let full = QueueFull { bound: QueueBound::All, lately: 0, ..full };
        assert!(full.to_string().contains("is `sluice up` running?"), "{full}");
        assert_eq!(full.json()["account"], Value::Null);
    }
}
