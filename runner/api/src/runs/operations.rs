//! Describes the routes of runs.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{
    ListQuery,
    event_view::EventView,
    events::{EVENT_STREAM, EventsQuery, JSON_LINES, LAST_EVENT_ID},
    order::{IDEMPOTENCY_KEY, MAX_KEY, OrderBody},
    view::{RunDetailsView, RunPageView, RunView},
};
use crate::{
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
};

/// Problems of an order, beyond those of its form.
const PROBLEMS_OF_ORDERS: [Problem; 11] = [
    Problem::UNKNOWN_AGENT,
    Problem::MODEL_NOT_GRANTED,
    Problem::NO_MODEL,
    Problem::MODEL_UNPRICED,
    Problem::NO_SESSION,
    Problem::AGENT_FORBIDDEN,
    Problem::ACCOUNT_FORBIDDEN,
    Problem::PRIORITY_TOO_HIGH,
    Problem::RUN_ID_TAKEN,
    Problem::QUEUE_FULL,
    Problem::CONFIGURATION_INVALID,
];

pub(crate) fn list() -> Operation {
    let page = AnswerSpec::json::<RunPageView<'_>>(StatusCode::OK, "A page of runs.");
    Operation::new("listRuns", "Lists runs, the newest first.", page)
        .described("Pages stay stable while new runs are ordered.")
        .query::<ListQuery>()
        .refuses([Problem::NOT_FOUND])
}

pub(crate) fn show() -> Operation {
    let run = AnswerSpec::json::<RunDetailsView<'_>>(StatusCode::OK, "The run.");
    Operation::new("getRun", "Answers with one run.", run)
}

pub(crate) fn cancel() -> Operation {
    let run = AnswerSpec::json::<RunView<'_>>(StatusCode::ACCEPTED, "The run, whose end is asked for.");
    Operation::new("cancelRun", "Asks for the end of a run.", run)
        .described("The state of the run changes once its agent has been stopped.")
}

pub(crate) fn create() -> Operation {
    let key = "Key under which the same order is one run, however often it is sent.";
    order("orderRun", "Orders a run.").header(IDEMPOTENCY_KEY, key, schemas::short_text(MAX_KEY))
}

pub(crate) fn create_named() -> Operation {
    order("orderNamedRun", "Orders a run under an id of the client.")
}

fn order(id: &'static str, summary: &'static str) -> Operation {
    let answer = |status, text| {
        AnswerSpec::json::<RunView<'_>>(status, text).with_header("location", "Path of the run.")
    };
    Operation::new(id, summary, answer(StatusCode::CREATED, "The new run."))
        .or(answer(StatusCode::OK, "The run that the same order has made before."))
        .described("An unknown field is refused with its name.")
        .body::<OrderBody>(&example())
        .refuses(PROBLEMS_OF_ORDERS)
}

fn example() -> Value {
    json!({ "agentId": "sandbox:agent", "input": "Why is the sky blue?" })
}

pub(crate) fn follow() -> Operation {
    let last = "Number of the last event that the client has, which browsers send when they reconnect.";
    let events = AnswerSpec::stream::<EventView>(&[EVENT_STREAM, JSON_LINES], "Events, as they happen.");
    let none =
        AnswerSpec::empty(StatusCode::NO_CONTENT, "The run has ended, and the client has every event.");
    Operation::new("followRun", "Streams the events of a run until it has ended.", events)
        .described(
            "With `Accept: text/event-stream` they are server-sent events, whose id is the number of the event. \
             Otherwise they are lines of JSON.",
        )
        .or(none)
        .query::<EventsQuery>()
        .header(LAST_EVENT_ID, last, schemas::event_number())
        .refuses([Problem::TOO_MANY_STREAMS])
}
