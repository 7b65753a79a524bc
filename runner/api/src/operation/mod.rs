//! Describes what a route does, takes and answers, for the OpenAPI document.
//!
//! An operation stands beside its handler. The table of routes pairs both, so that no route lacks one.

mod answer;
mod media;
pub(crate) mod schemas;

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value, json};
use utoipa::{
    IntoParams, PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

pub(crate) use self::answer::AnswerSpec;
use crate::problem::Problem;

/// Schemas by name, as the document has them.
pub(crate) type Schemas = BTreeMap<String, RefOr<Schema>>;

/// Description of a route.
#[derive(Clone)]
pub(crate) struct Operation {
    /// Name of the operation, from which clients make the name of a function.
    pub(crate) id: &'static str,
    /// First words of the description: "Lists runs".
    pub(crate) summary: &'static str,
    /// Further sentences.
    pub(crate) description: Option<&'static str>,
    /// Parameters in queries and headers. Those in paths follow from the path.
    pub(crate) parameters: Vec<Value>,
    pub(crate) body: Option<Value>,
    pub(crate) answers: Vec<AnswerSpec>,
    /// Problems beyond those of every route.
    pub(crate) problems: Vec<Problem>,
    pub(crate) schemas: Schemas,
}

impl Operation {
    /// Begins an operation that answers with `answer`.
    pub(crate) fn new(id: &'static str, summary: &'static str, answer: AnswerSpec) -> Self {
        let operation = Self {
            id,
            summary,
            description: None,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
            problems: Vec::new(),
            schemas: Schemas::new(),
        };
        operation.or(answer)
    }

    /// Adds sentences to the summary.
    pub(crate) const fn described(mut self, description: &'static str) -> Self {
        self.description = Some(description);
        self
    }

    /// Adds another answer.
    pub(crate) fn or(mut self, mut answer: AnswerSpec) -> Self {
        self.schemas.append(&mut answer.schemas);
        self.answers.push(answer);
        self
    }

    /// Adds the parameters of a query.
    pub(crate) fn query<Q: IntoParams>(mut self) -> Self {
        self.parameters.extend(Q::into_params(|| None).iter().map(|parameter| json!(parameter)));
        self.refuses([Problem::INVALID_REQUEST])
    }

    /// Adds a header that a request may have.
    pub(crate) fn header(mut self, name: &str, description: &str, schema: RefOr<Schema>) -> Self {
        self.parameters.push(json!({
            "name": name, "in": "header", "required": false, "description": description, "schema": schema,
        }));
        self.refuses([Problem::INVALID_REQUEST])
    }

    /// Adds a header that each request has.
    pub(crate) fn required_header(self, name: &str, description: &str, schema: RefOr<Schema>) -> Self {
        let mut operation = self.header(name, description, schema);
        if let Some(parameter) = operation.parameters.last_mut() {
            parameter["required"] = true.into();
        }
        operation
    }

    /// Adds a JSON body of the type `B`. `example` is one that the API takes.
    pub(crate) fn body<B: ToSchema>(mut self, example: &Value) -> Self {
        let content = json!({ "schema": self.schemas.reference::<B>(), "example": example });
        self.body = Some(json!({ "required": true, "content": { "application/json": content } }));
        self.refuses([
            Problem::INVALID_REQUEST,
            Problem::TOO_LARGE,
            Problem::BODY_TIMEOUT,
            Problem::UNSUPPORTED_MEDIA_TYPE,
        ])
    }

    /// Adds a body of the type `B` in a media type; a second one is another that a request may have.
    pub(crate) fn body_in<B: ToSchema>(mut self, media_type: &str) -> Self {
        let schema = self.schemas.reference::<B>();
        let body = self.body.get_or_insert_with(|| json!({ "required": true, "content": {} }));
        body["content"][media_type] = json!({ "schema": schema });
        self
    }

    /// Adds a JSON body of the type `B` that a request may leave out.
    pub(crate) fn optional_body<B: ToSchema>(self, example: &Value) -> Self {
        let mut operation = self.body::<B>(example);
        if let Some(body) = &mut operation.body {
            body["required"] = false.into();
        }
        operation
    }

    /// Adds the problem of a route that refuses every parameter of a query.
    pub(crate) fn without_query(self) -> Self {
        self.refuses([Problem::INVALID_REQUEST])
    }

    /// Adds the problems of a route without parameters that asks the data plane.
    pub(crate) fn asking_data_plane(self) -> Self {
        self.without_query().refuses([Problem::DATA_PLANE_UNAVAILABLE])
    }

    /// Adds problems with which the route answers, beyond those of every route.
    pub(crate) fn refuses(mut self, problems: impl IntoIterator<Item = Problem>) -> Self {
        for problem in problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        self
    }

    /// Returns whether a response with `status`, or with `problem`, is in the description.
    pub(crate) fn covers(&self, status: StatusCode, problem: Option<&Problem>) -> bool {
        match problem {
            Some(problem) => self.problems.contains(problem),
            None => self.answers.iter().any(|answer| answer.status == status),
        }
    }
}

/// Collection of the schemas that an operation refers to.
pub(crate) trait Reference {
    /// Adds the schema of `T` and those that it refers to; returns a reference to it.
    fn reference<T: ToSchema>(&mut self) -> Value;
}

impl Reference for Schemas {
    fn reference<T: ToSchema>(&mut self) -> Value {
        let name = T::name().into_owned();
        let mut further = Vec::new();
        T::schemas(&mut further);
        self.extend(further);
        self.insert(name.clone(), <T as PartialSchema>::schema());
        json!({ "$ref": format!("#/components/schemas/{name}") })
    }
}
