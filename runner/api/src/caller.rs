//! Identifies the sender of a request, and checks its rights.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use platform_core::id::{AccountId, AgentId, ExternalId};
use runner_engine::order::OrderLimits;
use runner_model::principal::{BrowserSessionHash, PrincipalRole};
use runner_store::{AccountScope, Error as StoreError, Principal, Store};

use crate::{context::ApiContext, credentials::Credential, error::Error};

/// Sender of a request.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// Client without a token, for whom `api.anonymous_account` pays.
    Anonymous(AccountId),
    /// Principal that a token identifies, or a browser session.
    Principal(Box<Principal>),
}

/// Sender of a request, with the browser session that identifies it.
#[derive(Debug)]
struct Identified {
    caller: Caller,
    /// Browser session; absent if a token identifies the caller, or nothing does.
    session: Option<BrowserSessionHash>,
}

/// Demand of a route on its callers.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) context: ApiContext,
    /// Smallest role that the route allows.
    pub(crate) role: PrincipalRole,
}

/// Passes on requests whose caller has the role that the route demands.
pub(crate) async fn require_role(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let credential = Credential::of(request.method(), request.headers(), &guard.context.origins);
    match guard.admit(credential).await {
        Ok(Identified { caller, session }) => {
            request.extensions_mut().insert(caller);
            if let Some(session) = session {
                request.extensions_mut().insert(session);
            }
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

impl Guard {
    /// Returns the caller with this credential, if the route is for its role.
    async fn admit(&self, credential: Result<Credential, Error>) -> Result<Identified, Error> {
        let identified = self.identify(credential?).await?;
        let role = identified.caller.role();
        if role < self.role { Err(Error::Role { needed: self.role, role }) } else { Ok(identified) }
    }

    async fn identify(&self, credential: Credential) -> Result<Identified, Error> {
        match credential {
            Credential::Token(token) => {
                let principal = self.context.opened().await?.store.authenticate(&token).await?;
                Identified::principal(principal, None)
            }
            Credential::Session(session) => {
                let principal = self.context.opened().await?.store.authenticate_browser(&session).await?;
                Identified::principal(principal, Some(session))
            }
            Credential::Absent => {
                let account = self.context.anonymous_account.clone().ok_or(Error::Unauthenticated)?;
                Ok(Identified { caller: Caller::Anonymous(account), session: None })
            }
        }
    }
}

impl Identified {
    fn principal(principal: Option<Principal>, session: Option<BrowserSessionHash>) -> Result<Self, Error> {
        let principal = principal.ok_or(Error::Unauthenticated)?;
        Ok(Self { caller: Caller::Principal(Box::new(principal)), session })
    }
}

impl Caller {
    /// Returns the caller's role. A client without a token is a member of its account.
    pub(crate) fn role(&self) -> PrincipalRole {
        match self {
            Self::Anonymous(_) => PrincipalRole::Member,
            Self::Principal(principal) => principal.role,
        }
    }

    /// Returns the account that pays for the caller's runs.
    pub(crate) fn account(&self) -> &AccountId {
        match self {
            Self::Anonymous(account) => account,
            Self::Principal(principal) => &principal.account,
        }
    }

    /// Returns whether the caller sees all accounts and the causes of failures.
    pub(crate) fn is_operator(&self) -> bool {
        self.role() >= PrincipalRole::Operator
    }

    /// Returns the accounts whose runs exist for the caller.
    pub(crate) fn scope(&self) -> AccountScope {
        if self.is_operator() { AccountScope::All } else { AccountScope::Only(self.account().clone()) }
    }

    /// Returns the account of an order that names `account`, or none.
    pub(crate) fn account_of_order(&self, account: Option<AccountId>) -> Result<AccountId, Error> {
        match account {
            Some(account) if account != *self.account() && !self.is_operator() => {
                Err(Error::Account { account })
            }
            account => Ok(account.unwrap_or_else(|| self.account().clone())),
        }
    }

    /// Checks that the caller may run `agent`.
    pub(crate) fn may_run(&self, agent: &AgentId) -> Result<(), Error> {
        match self {
            Self::Principal(principal)
                if principal.agents.as_ref().is_some_and(|agents| !agents.contains(agent)) =>
            {
                Err(Error::Agent { agent: agent.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the limits on each of the caller's runs.
    pub(crate) fn limits(&self) -> OrderLimits {
        match self {
            Self::Anonymous(_) => OrderLimits::default(),
            Self::Principal(principal) => OrderLimits {
                total_tokens: principal.limits.total_tokens,
                cost: principal.limits.cost_nanodollars,
            },
        }
    }

    /// Returns whether the caller's token, and the session that identifies it, are as valid as they were.
    pub(crate) async fn is_still_valid(
        &self,
        session: Option<&BrowserSessionHash>,
        store: &Store,
    ) -> Result<bool, StoreError> {
        if let Some(session) = session
            && !store.is_browser_session_valid(session).await?
        {
            return Ok(false);
        }
        match self {
            Self::Anonymous(_) => Ok(true),
            Self::Principal(principal) => store.is_key_valid(&principal.key_id).await,
        }
    }

    /// Returns the user of the caller's runs, for the upstream's records.
    pub(crate) fn user(&self) -> Option<ExternalId> {
        match self {
            Self::Anonymous(_) => None,
            Self::Principal(principal) => ExternalId::parse(principal.id.as_str()).ok(),
        }
    }

    /// Returns a name that no other caller has, for keys that the caller chooses.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Anonymous(account) => format!("anonymous/{account}"),
            Self::Principal(principal) => format!("principal/{}", principal.id),
        }
    }
}
