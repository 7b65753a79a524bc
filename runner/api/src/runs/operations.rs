//! Describes the routes of runs.

use axum::http::StatusCode;
use serde_json::{Value, json};

use super::{
    ListQuery,
    again::AttemptBody,
    calls::{CallPageView, CallsQuery},
    event_source::LAST_EVENT_ID,
    event_view::EventView,
    events::EventsQuery,
    file_view::{RunDiffView, RunFilesView},
    files::FilesQuery,
    logs::LogsQuery,
    order_body::{IDEMPOTENCY_KEY, MAX_KEY, OrderBody},
    tool_calls::{ToolCallPageView, ToolCallsQuery},
    view::{RunDetailsView, RunPageView, RunView},
};
use crate::{
    operation::{AnswerSpec, Operation, schemas},
    problem::Problem,
    stream_response::{EVENT_STREAM, JSON_LINES},
};

/// Sentences about the two forms of a stream.
const FORMS: &str =
    "With `Accept: text/event-stream` they are server-sent events. Otherwise they are lines of JSON.";

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

pub(crate) fn forget() -> Operation {
    let removed = AnswerSpec::empty(StatusCode::NO_CONTENT, "The texts of the run are removed.");
    Operation::new("forgetRun", "Removes the question, the answer and the output of an ended run.", removed)
        .described(
            "The run stays, with its times, its usage and the code of its failure. A second time changes nothing.",
        )
        .without_query()
        .refuses([Problem::RUN_ACTIVE])
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
        .refuses(Problem::OF_ORDERS)
        .refuses([Problem::ACCOUNT_FORBIDDEN, Problem::THREAD_BUSY])
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

pub(crate) fn logs() -> Operation {
    let last = "Number of the last event that the client has, which browsers send when they reconnect.";
    let events = AnswerSpec::stream::<EventView>(&[EVENT_STREAM, JSON_LINES], "Output, as it is written.");
    let none = AnswerSpec::empty(StatusCode::NO_CONTENT, "The run has ended, and the client has all output.");
    Operation::new("readLogs", "Streams the output of a run's agent until the run has ended.", events)
        .described(FORMS)
        .or(none)
        .query::<LogsQuery>()
        .header(LAST_EVENT_ID, last, schemas::event_number())
        .refuses([Problem::TOO_MANY_STREAMS])
}

pub(crate) fn list_calls() -> Operation {
    let page = AnswerSpec::json::<CallPageView<'_>>(StatusCode::OK, "A page of calls.");
    Operation::new("listCalls", "Lists the calls of a run, in the order in which they ended.", page)
        .described(
            "Refused calls are listed, too. A call is listed moments after its end, and for as long as the journal is \
             kept.",
        )
        .query::<CallsQuery>()
}

pub(crate) fn list_tool_calls() -> Operation {
    let page = AnswerSpec::json::<ToolCallPageView>(StatusCode::OK, "A page of calls.");
    Operation::new("listToolCalls", "Lists the calls of host tools of a run, the oldest first.", page)
        .described(
            "Calls that the proxy refused are not listed: the calls of the run have them. A call that reads is listed \
             once it has ended.",
        )
        .query::<ToolCallsQuery>()
}

pub(crate) fn changes() -> Operation {
    let runs = AnswerSpec::stream::<RunView<'_>>(&[EVENT_STREAM, JSON_LINES], "Runs, as they change.");
    Operation::new("followRuns", "Streams runs whenever one is new or in another state.", runs)
        .described(FORMS)
        .without_query()
        .refuses([Problem::TOO_MANY_STREAMS])
}

/// Problems of reading the files of a run.
const OF_FILES: [Problem; 3] = [Problem::NO_FILES, Problem::NO_FILES_YET, Problem::TOO_MANY_FILES];

pub(crate) fn list_files() -> Operation {
    let files = AnswerSpec::json::<RunFilesView<'_>>(StatusCode::OK, "The files.");
    Operation::new("listFiles", "Lists the files that a run has now, with the change of each.", files)
        .query::<FilesQuery>()
        .refuses(OF_FILES)
}

pub(crate) fn diff() -> Operation {
    let diff = AnswerSpec::json::<RunDiffView<'_>>(StatusCode::OK, "The differences.")
        .or_text("text/plain; charset=utf-8");
    let summary = "Answers with the differences between the files that a run received and those it has now.";
    Operation::new("diffFiles", summary, diff)
        .described("With `Accept: application/json` they come with figures, otherwise in git's format.")
        .query::<FilesQuery>()
        .refuses(OF_FILES)
        .refuses([Problem::DIFFERENCE_TOO_LARGE])
}

pub(crate) fn download() -> Operation {
    let content = AnswerSpec::bytes("The content of the file.")
        .with_header("content-disposition", "Name under which a browser stores the file.");
    Operation::new("readFile", "Answers with the content of one file.", content)
        .described("The path's slashes may be escaped.")
        .without_query()
        .refuses(OF_FILES)
        .refuses([Problem::FILE_REFUSED, Problem::TOO_MANY_STREAMS])
}

pub(crate) fn again() -> Operation {
    let run = AnswerSpec::json::<RunView<'_>>(StatusCode::ACCEPTED, "The run, in its next attempt.");
    let before =
        AnswerSpec::json::<RunView<'_>>(StatusCode::OK, "The run, which is in that attempt already.");
    Operation::new("runAgain", "Starts the next attempt of an ended run.", run)
        .described("The same expected attempt again answers with the same attempt.")
        .or(before)
        .without_query()
        .optional_body::<AttemptBody>(&json!({}))
        .refuses([
            Problem::BALANCE_EXHAUSTED,
            Problem::AGENT_FORBIDDEN,
            Problem::REPOSITORY_NOT_ALLOWED,
            Problem::LIMITS_EXCEEDED,
            Problem::RUN_NOT_ENDED,
            Problem::OTHER_ATTEMPT,
            Problem::NOT_REPEATABLE,
        ])
        .refuses([Problem::QUEUE_FULL])
}
