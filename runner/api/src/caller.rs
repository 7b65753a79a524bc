//! Identifies the sender of a request, and checks its rights.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use platform_core::{
    grant::Correlation,
    id::{AccountId, AgentId, ExternalId, GatewayAgentId},
};
use runner_engine::{gateway_agent_choice::GatewayAgentOrder, run_order::OrderLimits};
use runner_model::principal::{BrowserSessionHash, PrincipalRole};
use runner_store::{AccountScope, Error as StoreError, Principal, Store};
use runner_telemetry::metrics::SignInWay;

use crate::{connection_table::ConnectionEntry, context::ApiContext, credentials::Credential, error::Error};

/// Sender of a request.
#[derive(Debug, Clone)]
pub(crate) enum Caller {
    /// Client without a token, for whom `api.anonymous_account` pays.
    Anonymous(AccountId),
    /// Principal that a token identifies.
    Principal(Box<Principal>),
    /// Principal that a browser session identifies.
    Browser(Box<Principal>, BrowserSessionHash),
}

/// Credentials that a route takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AcceptedCredentials {
    /// Token of a principal.
    Token,
    /// Token of a principal, or the cookie of its session; none, where an account pays for such requests.
    All,
}

/// Demand of a route on its callers.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) context: ApiContext,
    /// Smallest role that the route allows.
    pub(crate) role: PrincipalRole,
    pub(crate) accepts: AcceptedCredentials,
}

/// Passes on requests from callers with the role that the route demands.
pub(crate) async fn require_role(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let credential = Credential::of(request.method(), request.headers(), &guard.context.origins);
    match guard.admit(credential).await.map_err(|error| guard.counted(error)) {
        Ok(caller) => {
            if let (Some(entry), Some(principal)) =
                (request.extensions().get::<ConnectionEntry>(), caller.principal())
            {
                entry.identify(&principal.id);
            }
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

impl Guard {
    /// Returns the error of a request, which counts as an attempt if the route is that for signing in.
    fn counted(&self, error: Error) -> Error {
        let signs_in = self.accepts == AcceptedCredentials::Token;
        match error {
            Error::Unauthenticated if signs_in => self.context.sign_in_attempts.refused(SignInWay::Token),
            error => error,
        }
    }

    /// Returns the caller with this credential, if the route is for its role.
    async fn admit(&self, credential: Result<Credential, Error>) -> Result<Caller, Error> {
        let caller = self.identify(credential?).await?.ok_or(Error::Unauthenticated)?;
        if self.accepts == AcceptedCredentials::Token && !matches!(caller, Caller::Principal(_)) {
            return Err(Error::Unauthenticated);
        }
        let role = caller.role();
        if role < self.role { Err(Error::Role { needed: self.role, role }) } else { Ok(caller) }
    }

    async fn identify(&self, credential: Credential) -> Result<Option<Caller>, Error> {
        Ok(match credential {
            Credential::Token(token) => {
                let principal = self.context.opened().await?.store.authenticate(&token).await?;
                principal.map(|principal| Caller::Principal(Box::new(principal)))
            }
            Credential::Session(session) => {
                let principal = self.context.opened().await?.store.authenticate_browser(&session).await?;
                principal.map(|principal| Caller::Browser(Box::new(principal), session))
            }
            Credential::Absent => self.context.anonymous_account.clone().map(Caller::Anonymous),
        })
    }
}

impl Caller {
    fn principal(&self) -> Option<&Principal> {
        match self {
            Self::Anonymous(_) => None,
            Self::Principal(principal) | Self::Browser(principal, _) => Some(principal),
        }
    }

    /// Returns the caller's role. A client without a token is a member of its account.
    pub(crate) fn role(&self) -> PrincipalRole {
        self.principal().map_or(PrincipalRole::Member, |principal| principal.role)
    }

    /// Returns the account that pays for the caller's runs.
    pub(crate) fn account(&self) -> &AccountId {
        match self {
            Self::Anonymous(account) => account,
            Self::Principal(principal) | Self::Browser(principal, _) => &principal.account,
        }
    }

    /// Returns whether the caller sees all accounts and the causes of failures.
    pub(crate) fn is_operator(&self) -> bool {
        self.role() >= PrincipalRole::Operator
    }

    /// Returns the accounts that exist for the caller.
    pub(crate) fn scope(&self) -> AccountScope {
        if self.is_operator() { AccountScope::All } else { AccountScope::Only(self.account().clone()) }
    }

    /// Returns whether `account` exists for the caller.
    pub(crate) fn sees(&self, account: &AccountId) -> bool {
        self.is_operator() || account == self.account()
    }

    /// Returns the account that the path of a request names, if it exists for the caller.
    pub(crate) fn find_account(&self, text: &str) -> Result<AccountId, Error> {
        let account = AccountId::parse(text).map_err(|_invalid| Error::Route)?;
        if self.sees(&account) { Ok(account) } else { Err(Error::Route) }
    }

    /// Returns the account that a query names, or none. For the caller, the objects of an account that it does not see
    /// are as absent as the account.
    pub(crate) fn account_of_query(&self, named: Option<AccountId>) -> Result<Option<AccountId>, Error> {
        match named {
            Some(account) if !self.sees(&account) => Err(Error::Route),
            named => Ok(named),
        }
    }

    /// Returns the account of an order that names `account`, or none.
    pub(crate) fn account_of_order(&self, account: Option<AccountId>) -> Result<AccountId, Error> {
        match account {
            Some(account) if !self.sees(&account) => Err(Error::Account { account }),
            account => Ok(account.unwrap_or_else(|| self.account().clone())),
        }
    }

    /// Checks that the caller may run `agent`.
    pub(crate) fn may_run(&self, agent: &AgentId) -> Result<(), Error> {
        let agents = self.principal().and_then(|principal| principal.agents.as_ref());
        match agents {
            Some(agents) if !agents.contains(agent) => Err(Error::Agent { agent: agent.clone() }),
            _ => Ok(()),
        }
    }

    /// Returns the agent of a gateway that an order of the caller asks for. A token that is limited to some agents is not for
    /// all that their gateways have, so it gets those of the settings.
    pub(crate) fn gateway_agent_order(
        &self,
        named: Option<GatewayAgentId>,
    ) -> Result<GatewayAgentOrder, Error> {
        let is_limited = self.principal().is_some_and(|principal| principal.agents.is_some());
        match named {
            Some(_) if is_limited => Err(Error::LimitedPrincipal),
            None if is_limited => Ok(GatewayAgentOrder::Configured),
            named => Ok(named.into()),
        }
    }

    /// Checks that the caller's token is limited to no agents or repositories. All agents and repositories of the account
    /// use its connections, its agents in gateways and their files, so a token that is limited to some may not.
    pub(crate) fn refuse_limited(&self) -> Result<(), Error> {
        let limited = |principal: &Principal| principal.agents.is_some() || principal.repositories.is_some();
        if self.principal().is_some_and(limited) { Err(Error::LimitedPrincipal) } else { Ok(()) }
    }

    /// Returns the repositories that the caller's runs may work on; `None` if only its account bounds them.
    pub(crate) fn repositories(&self) -> Option<&[String]> {
        self.principal().and_then(|principal| principal.repositories.as_deref())
    }

    /// Returns the limits on each of the caller's runs.
    pub(crate) fn limits(&self) -> OrderLimits {
        self.principal().map_or_else(OrderLimits::default, |principal| OrderLimits {
            total_tokens: principal.limits.total_tokens,
            cost: principal.limits.cost_nanodollars,
        })
    }

    /// Returns whether the caller's token, and the session that identifies it, are as valid as they were.
    pub(crate) async fn is_still_valid(&self, store: &Store) -> Result<bool, StoreError> {
        if let Self::Browser(_, session) = self
            && !store.is_browser_session_valid(session).await?
        {
            return Ok(false);
        }
        match self.principal() {
            None => Ok(true),
            Some(principal) => store.is_key_valid(&principal.key_id).await,
        }
    }

    /// Returns the ids of the caller's runs for the upstream's records: the principal is the user, the thread the session.
    pub(crate) fn correlation(&self, thread: Option<ExternalId>) -> Correlation {
        let user = self.principal().and_then(|principal| ExternalId::parse(principal.id.as_str()).ok());
        Correlation { trace_user: user.clone(), user, session: thread, existing_trace: None }
    }

    /// Returns a name that no other caller has, for keys that the caller chooses.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Anonymous(account) => format!("anonymous/{account}"),
            Self::Principal(principal) | Self::Browser(principal, _) => format!("principal/{}", principal.id),
        }
    }
}
