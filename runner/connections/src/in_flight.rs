//! in_flight holds what callers share: refreshes that go on, and sources of installations' tokens.

use std::{collections::HashMap, sync::Arc};

use futures_util::future::{BoxFuture, Shared};
use platform_core::connection::ConnectionId;
use platform_runtime::sync::Mutex;
use runner_github::CredentialSource;
use runner_store::StoredConnection;

use crate::error::CredentialError;

/// Refresh in flight, which callers share.
pub(crate) type Flight = Shared<BoxFuture<'static, Result<StoredConnection, CredentialError>>>;

/// Sources of installations' tokens, by connection and version. They share tokens until these end.
#[derive(Debug, Default)]
pub(crate) struct InstallationSources(pub(crate) Mutex<HashMap<(ConnectionId, u64), Arc<CredentialSource>>>);
