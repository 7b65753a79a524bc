//! Defines routes: a method and a path, the role that they demand, and the handler with its description.
//!
//! A route is built from its handler and its description together, so that none is undocumented. A debug build checks
//! each answer against the description.

use std::sync::Arc;

use axum::{
    extract::State,
    handler::Handler,
    http::Method,
    middleware,
    response::Response,
    routing::{self, MethodRouter},
};
use runner_model::principal::PrincipalRole;

use crate::{
    answer_timeout::answer_in_time,
    caller::{AcceptedCredentials, Guard, require_role},
    context::ApiContext,
    openai::in_openai_form,
    operation::Operation,
    problem::Problem,
};

/// Route of the API.
pub(crate) struct Route {
    pub(crate) path: &'static str,
    /// Smallest role that it demands; absent if it is open to every client on this host.
    pub(crate) role: Option<PrincipalRole>,
    pub(crate) endpoint: Endpoint,
    pub(crate) accepts: AcceptedCredentials,
    begin: Begin,
    pub(crate) errors: ErrorForm,
}

/// Time at which the answer of a route begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begin {
    /// Within [`crate::answer_timeout::ANSWER_TIMEOUT`].
    Soon,
    /// At the end of a run, if the client waits for it.
    AtEndOfRun,
}

/// Form of a route's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// Problem details (RFC 9457).
    Problem,
    OpenAi,
}

/// Handler of a route, with its method and its description.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    handler: MethodRouter<ApiContext>,
    pub(crate) operation: Operation,
}

/// Returns a route that is open to every client on this host.
pub(crate) fn open(path: &'static str, endpoint: Endpoint) -> Route {
    let endpoint = endpoint.refusing(Problem::EVERYWHERE).below(path);
    let accepts = AcceptedCredentials::All;
    Route { path, role: None, endpoint, accepts, begin: Begin::Soon, errors: ErrorForm::Problem }
}

/// Returns a route that demands a role.
pub(crate) fn guarded(path: &'static str, role: PrincipalRole, endpoint: Endpoint) -> Route {
    let changes = !endpoint.method.is_safe();
    let endpoint = endpoint.refusing(Problem::GUARDED);
    let endpoint = if changes { endpoint.refusing(Problem::GUARDED_CHANGES) } else { endpoint };
    Route { role: Some(role), ..open(path, endpoint) }
}

/// Returns a route of the part of OpenAI's API that is served.
pub(crate) fn openai(path: &'static str, role: PrincipalRole, endpoint: Endpoint) -> Route {
    Route { errors: ErrorForm::OpenAi, ..guarded(path, role, endpoint) }
}

/// Declares the functions that return an endpoint for a method.
macro_rules! endpoints {
    ($($name:ident $method:ident;)*) => { $(
        /// Returns the endpoint of this method.
        pub(crate) fn $name<H, T>(handler: H, operation: Operation) -> Endpoint
        where
            H: Handler<T, ApiContext>,
            T: 'static,
        {
            Endpoint { method: Method::$method, handler: routing::$name(handler), operation }
        }
    )* };
}

endpoints! {
    get GET;
    post POST;
    put PUT;
    delete DELETE;
}

impl Endpoint {
    /// Adds problems with which the routes answer that demand the same.
    fn refusing<const N: usize>(mut self, problems: [Problem; N]) -> Self {
        self.operation = self.operation.refuses(problems);
        self
    }

    /// Adds the problem of a path that names an object.
    fn below(self, path: &str) -> Self {
        if path.contains('{') { self.refusing([Problem::NOT_FOUND]) } else { self }
    }
}

impl Route {
    /// Returns the same route, which refuses the cookie of a session, and callers without a token.
    pub(crate) const fn with_token_alone(mut self) -> Self {
        self.accepts = AcceptedCredentials::Token;
        self
    }

    /// Returns the same route, with an answer that may begin at the end of a run.
    pub(crate) const fn at_end_of_run(mut self) -> Self {
        self.begin = Begin::AtEndOfRun;
        self
    }

    /// Returns the handler, with all that the route demands of its requests and answers.
    pub(crate) fn layered(self, context: &ApiContext) -> MethodRouter<ApiContext> {
        let Endpoint { mut handler, operation, .. } = self.endpoint;
        if let Some(role) = self.role {
            let guard = Guard { context: context.clone(), role, accepts: self.accepts };
            handler = handler.route_layer(middleware::from_fn_with_state(guard, require_role));
        }
        if self.begin == Begin::Soon {
            handler = handler.route_layer(middleware::from_fn(answer_in_time));
        }
        if cfg!(debug_assertions) {
            let operation = Arc::new(operation);
            handler = handler.route_layer(middleware::map_response_with_state(operation, check_documented));
        }
        match self.errors {
            ErrorForm::Problem => handler,
            ErrorForm::OpenAi => handler.route_layer(middleware::from_fn(in_openai_form)),
        }
    }
}

/// Checks that the description of a route has the response, so that tests find what it leaves out.
async fn check_documented(State(operation): State<Arc<Operation>>, response: Response) -> Response {
    let problem = response.extensions().get::<Problem>();
    let covered = operation.covers(response.status(), problem);
    debug_assert!(covered, "{} does not document {}, {problem:?}", operation.id, response.status());
    response
}
