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
    caller::{Guard, require_role},
    context::ApiContext,
    operation::Operation,
    problem::Problem,
};

/// Route of the API.
pub(crate) struct Route {
    pub(crate) path: &'static str,
    /// Smallest role that it demands; absent if it is open to every client on this host.
    pub(crate) role: Option<PrincipalRole>,
    pub(crate) endpoint: Endpoint,
}

/// Handler of a route, with its method and its description.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    handler: MethodRouter<ApiContext>,
    pub(crate) operation: Operation,
}

/// Returns a route that is open to every client on this host.
pub(crate) fn open(path: &'static str, endpoint: Endpoint) -> Route {
    Route { path, role: None, endpoint: endpoint.refusing(Problem::EVERYWHERE).below(path) }
}

/// Returns a route that demands a role.
pub(crate) fn guarded(path: &'static str, role: PrincipalRole, endpoint: Endpoint) -> Route {
    let endpoint = endpoint.refusing(Problem::EVERYWHERE).refusing(Problem::GUARDED);
    Route { path, role: Some(role), endpoint: endpoint.below(path) }
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
    /// Returns the handler, behind the check of the caller's role.
    pub(crate) fn handler(self, context: &ApiContext) -> MethodRouter<ApiContext> {
        let Endpoint { handler, operation, .. } = self.endpoint;
        let handler = match self.role {
            Some(role) => {
                let guard = Guard { context: context.clone(), role };
                handler.route_layer(middleware::from_fn_with_state(guard, require_role))
            }
            None => handler,
        };
        if cfg!(debug_assertions) {
            let operation = Arc::new(operation);
            handler.route_layer(middleware::map_response_with_state(operation, check_documented))
        } else {
            handler
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
