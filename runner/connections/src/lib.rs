//! runner_connections keeps the credentials that accounts have at providers, and resolves them for host tools.
//!
//! A connection has an account, a provider and a scope. Its secret is sealed with a key that the store does not have. The
//! broker opens it when a tool runs, and refreshes it before it expires. Agents never see a credential.
//!
//! 1. [`ConnectionBroker`] resolves, adds, tests and removes connections.
//! 2. [`SealingKeys`] seals and opens secrets.
//! 3. `oauth` asks a provider for an access token, and `refresh` does that once for all who need it.
//!
//! Does not decide which run may call which tool. Does not let an account choose the address that a secret is sent to:
//! addresses are the operator's.

mod broker;
mod content;
mod error;
mod github;
mod in_flight;
mod keys;
mod manage;
mod oauth;
mod refresh;
mod seal;
mod token_answer;

pub use self::{
    broker::{ConnectionBroker, Credential},
    error::{AddError, CredentialError, SealFault},
    github::AccountSource,
    keys::{KeyFileError, SealingKeys},
    manage::{ConnectionTest, MIN_TEST_INTERVAL, Resealed, TestedBy, WantedConnection},
};
