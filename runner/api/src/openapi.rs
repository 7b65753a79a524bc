//! Writes the OpenAPI document of the API from the table of routes.

use std::{collections::BTreeMap, iter};

use serde_json::{Map, Value, json};

use crate::{
    caller::AcceptedCredentials,
    credentials::SessionCookie,
    endpoint::{ErrorForm, Route},
    openai::OpenAiError,
    operation::{
        Reference, Schemas,
        schemas::{AccountId, ModelName, RunId, ThreadKey},
    },
    problem::Problem,
    problem_details::ProblemDetails,
};

/// Version of the specification that the document follows.
const OPENAPI: &str = "3.1.0";
const JSON: &str = "application/json";
/// Name of the scheme under which a request sends its token.
const BEARER: &str = "bearer";
/// Names of the schemes under which a browser sends the cookie of its session, without TLS and with it.
const SESSIONS: [(&str, SessionCookie); 2] =
    [("session", SessionCookie::Plain), ("secureSession", SessionCookie::Secure)];

const DESCRIPTION: &str = "Orders and follows runs of sandboxed agents. Requests with a body send `application/json`. \
    Errors are problem details (RFC 9457), whose `code` is stable. Below `/v1` they have OpenAI's form.";

/// Returns the document of `routes`, as JSON.
pub(crate) fn document(routes: &[Route]) -> String {
    let mut paths = BTreeMap::<String, Map<String, Value>>::new();
    let mut schemas = Schemas::new();
    let forms = [schemas.reference::<ProblemDetails>(), schemas.reference::<OpenAiError<'_>>()];
    for route in routes {
        let operation = &route.endpoint.operation;
        schemas.extend(operation.schemas.clone());
        let method = route.endpoint.method.as_str().to_ascii_lowercase();
        paths
            .entry(template(route.path))
            .or_default()
            .insert(method, operation_of(route, &forms, &mut schemas));
    }
    let document = json!({
        "openapi": OPENAPI,
        "info": {
            "title": "Sluicegate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:4180", "description": "The address in `api.listen`." }],
        "paths": paths,
        "components": { "schemas": schemas, "securitySchemes": security_schemes() },
    });
    format!("{document:#}\n")
}

/// Returns the ways in which a request says who sends it.
fn security_schemes() -> Value {
    let mut schemes = json!({ BEARER: {
        "type": "http",
        "scheme": "bearer",
        "description": "Token of a principal, which `sluice principals add` prints. With `api.anonymous_account`, \
            a request may do without.",
    } });
    for (name, cookie) in SESSIONS {
        let when = match cookie {
            SessionCookie::Plain => "if one of `api.origins` has no TLS",
            SessionCookie::Secure => "if all `api.origins` have TLS",
        };
        let description = format!(
            "Cookie of a browser's session, {when}; `signIn` sets it. A method other than GET also needs the `Origin` of \
                an own page, and `application/json` as its type."
        );
        schemes[name] =
            json!({ "type": "apiKey", "in": "cookie", "name": cookie.name(), "description": description });
    }
    schemes
}

/// Returns the schemes of which a request to a route uses one.
fn security(accepts: AcceptedCredentials) -> Value {
    let sessions = SESSIONS.iter().map(|(name, _)| json!({ *name: [] }));
    let sessions = sessions.filter(|_| accepts == AcceptedCredentials::All);
    iter::once(json!({ BEARER: [] })).chain(sessions).collect()
}

/// Returns a path of a route as OpenAPI writes it. A placeholder for the rest of a path is one like the others there.
fn template(path: &str) -> String {
    path.replace("{*", "{")
}

/// Returns the group of a route, by its path: the collection that it is about.
fn tag(path: &str) -> &str {
    if path.starts_with("/v1/") {
        return "openai";
    }
    let below = path.strip_prefix("/api/v1/").map(|rest| rest.strip_prefix("ai/").unwrap_or(rest));
    let collection = below.and_then(|rest| rest.split('/').next()).filter(|name| !name.contains('.'));
    collection.unwrap_or("service")
}

/// Returns the names of the placeholders in a path.
fn placeholders(path: &str) -> impl Iterator<Item = &str> {
    path.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.trim_start_matches('*')))
}

/// Returns a route as the document has it. `forms` are the schemas of problem details and of OpenAI's errors.
fn operation_of(route: &Route, forms: &[Value; 2], schemas: &mut Schemas) -> Value {
    let operation = &route.endpoint.operation;
    let path_parameters = placeholders(route.path).map(|name| path_parameter(route, name, schemas));
    let parameters: Vec<_> = path_parameters.chain(operation.parameters.iter().cloned()).collect();
    let mut written = json!({
        "operationId": operation.id,
        "summary": operation.summary,
        "tags": [tag(route.path)],
        "responses": responses(route, forms),
    });
    if let Some(description) = operation.description {
        written["description"] = description.into();
    }
    if !parameters.is_empty() {
        written["parameters"] = parameters.into();
    }
    if let Some(body) = &operation.body {
        written["requestBody"] = body.clone();
    }
    if let Some(role) = route.role {
        written["security"] = security(route.accepts);
        written["x-role"] = role.name().into();
    }
    written
}

fn path_parameter(route: &Route, name: &str, schemas: &mut Schemas) -> Value {
    let schema = match name {
        "run" => schemas.reference::<RunId>(),
        "account" => schemas.reference::<AccountId>(),
        "thread" => schemas.reference::<ThreadKey>(),
        "model" if route.errors == ErrorForm::Problem => schemas.reference::<ModelName>(),
        _ => json!({ "type": "string", "minLength": 1 }),
    };
    let description = match name {
        "account" | "run" | "call" => format!("Id of the {name}."),
        "thread" => "Key of the thread.".to_owned(),
        "path" => "Path of the file in the workspace.".to_owned(),
        _ => format!("Name of the {name}."),
    };
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
}

/// Returns the answers of a route, by status. Problems with the same status are one answer.
fn responses(route: &Route, forms: &[Value; 2]) -> Value {
    let operation = &route.endpoint.operation;
    let answers = operation.answers.iter();
    let mut responses: BTreeMap<_, _> =
        answers.map(|answer| (answer.status.as_u16().to_string(), answer.to_json())).collect();
    let mut by_status = BTreeMap::<_, Vec<_>>::new();
    for problem in &operation.problems {
        by_status.entry(problem.status().as_u16().to_string()).or_default().push(problem);
    }
    for (status, mut problems) in by_status {
        problems.sort_by_key(|problem| problem.word());
        responses.insert(status, refusal(route.errors, &problems, forms));
    }
    json!(responses)
}

fn refusal(form: ErrorForm, problems: &[&Problem], [details, openai]: &[Value; 2]) -> Value {
    let text: Vec<_> = problems.iter().map(|it| format!("`{}`: {}.", it.word(), it.when)).collect();
    let cases = problems.iter().map(|it| json!({ "code": it.word(), "when": it.when, "help": it.help }));
    let is_in_openai_form =
        |problem: &Problem| form == ErrorForm::OpenAi && !Problem::BEFORE_ROUTES.contains(problem);
    let mut content = Map::new();
    for problem in problems {
        let (media_type, schema) =
            if is_in_openai_form(problem) { (JSON, openai) } else { (ProblemDetails::MEDIA_TYPE, details) };
        content.insert(media_type.to_owned(), json!({ "schema": schema }));
    }
    json!({
        "description": text.join(" "),
        "content": content,
        "x-problems": cases.collect::<Vec<_>>(),
    })
}
