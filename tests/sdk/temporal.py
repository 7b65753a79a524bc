"""Runs the Temporal example of the book: its activity as Temporal calls it, and its workflow against a history.

No Temporal server is there: ActivityEnvironment stands for the worker, and Replayer for the server.

usage: TOKEN=... WRONG_TOKEN=... python tests/sdk/temporal.py FOLDER URL, with the files of the page in FOLDER
"""

import asyncio
import base64
import dataclasses
import json
import os
import sys

FOLDER, URL = sys.argv[1:]
sys.path.insert(0, FOLDER)

import httpx  # noqa: E402
from agent_activity import AgentActivities, Answer, Order  # noqa: E402
from agent_workflow import AskAgent  # noqa: E402
from temporalio.activity import ActivityCancellationDetails  # noqa: E402
from temporalio.client import WorkflowHistory  # noqa: E402
from temporalio.exceptions import ApplicationError  # noqa: E402
from temporalio.runtime import Runtime, TelemetryConfig  # noqa: E402
from temporalio.testing import ActivityEnvironment  # noqa: E402
from temporalio.worker import Replayer  # noqa: E402

TOKEN = os.environ["TOKEN"]
CANCELLED = ActivityCancellationDetails(cancel_requested=True)
WORKER_STOPS = ActivityCancellationDetails(worker_shutdown=True)


def attempt(activity_id: str, heartbeat: tuple = ()) -> tuple[ActivityEnvironment, asyncio.Queue]:
    """Returns an attempt of an activity after one whose last heartbeat this was, and its own heartbeats."""
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(
        environment.info, activity_id=activity_id, heartbeat_details=list(heartbeat)
    )
    heartbeats = asyncio.Queue()
    environment.on_heartbeat = lambda *details: heartbeats.put_nowait(details)
    return environment, heartbeats


async def run(activity_id: str, agent: str, url: str = URL, token: str = TOKEN) -> Answer:
    activities = AgentActivities(url, token)
    return await attempt(activity_id)[0].run(activities.run_agent, Order("Why?", agent))


async def error(activity_id: str, agent: str, **api) -> dict:
    """Returns the error with which the activity fails."""
    try:
        raise AssertionError(await run(activity_id, agent, **api))
    except ApplicationError as error:
        return as_json(error)


def as_json(error: ApplicationError) -> dict:
    delay = error.next_retry_delay and error.next_retry_delay.total_seconds()
    return {"type": error.type, "retryable": not error.non_retryable, "delay": delay}


async def ended_by(details: ActivityCancellationDetails, heartbeat: tuple = ()) -> tuple:
    """Ends an attempt of a long activity once it has seen an event; returns the heartbeat of that event."""
    environment, heartbeats = attempt("long", heartbeat)
    activities = AgentActivities(URL, TOKEN)
    task = asyncio.ensure_future(environment.run(activities.run_agent, Order("Why?", "test:ticks")))
    # If the activity fails, nothing else would end the wait.
    task.add_done_callback(lambda _: heartbeats.put_nowait(("", sys.maxsize)))
    seen = heartbeat[1] if heartbeat else 0
    while (last := await heartbeats.get())[1] <= seen:
        pass
    environment.cancel(details)
    try:
        raise AssertionError(await task)
    except asyncio.CancelledError:
        return last


async def mapped(status: int, headers: dict) -> dict:
    """Returns the error for a refusal of the API that takes a full queue or a stopped store."""
    body = {"code": "refused", "detail": "refused", "help": "wait"}
    problem = {"content-type": "application/problem+json"}
    answer = httpx.Response(status, headers=problem | headers, text=json.dumps(body))
    activities = AgentActivities(URL, TOKEN)
    activities.client = httpx.AsyncClient(base_url=URL, transport=httpx.MockTransport(lambda _: answer))
    try:
        raise AssertionError(await attempt("mapped")[0].run(activities.run_agent, Order("Why?")))
    except ApplicationError as error:
        return as_json(error)


def history(activity_type: str) -> WorkflowHistory:
    """Returns the history of a workflow that called an activity of this type."""

    def payload(value) -> dict:
        encoded = [base64.b64encode(text.encode()).decode() for text in ("json/plain", json.dumps(value))]
        return {"payloads": [{"metadata": {"encoding": encoded[0]}, "data": encoded[1]}]}

    queue = {"taskQueue": {"name": "agents"}}
    order, answer = {"question": "Why?"}, {"run_id": "run-1", "text": "It is."}
    # With flag 1, a replay also compares the types of activities.
    checked = {"sdkMetadata": {"coreUsedFlags": [1]}}
    events = [
        ("WorkflowExecutionStarted", {"workflowType": {"name": "AskAgent"}, "input": payload(order), **queue}),
        ("WorkflowTaskScheduled", queue),
        ("WorkflowTaskStarted", {"scheduledEventId": 2}),
        ("WorkflowTaskCompleted", {"scheduledEventId": 2, "startedEventId": 3, **checked}),
        ("ActivityTaskScheduled", {"activityId": "1", "activityType": {"name": activity_type}, **queue}),
        ("ActivityTaskStarted", {"scheduledEventId": 5}),
        ("ActivityTaskCompleted", {"scheduledEventId": 5, "startedEventId": 6, "result": payload(answer)}),
        ("WorkflowTaskScheduled", queue),
        ("WorkflowTaskStarted", {"scheduledEventId": 8}),
        ("WorkflowTaskCompleted", {"scheduledEventId": 8, "startedEventId": 9}),
        ("WorkflowExecutionCompleted", {"workflowTaskCompletedEventId": 10, "result": payload(answer)}),
    ]
    written = []
    for number, (name, attributes) in enumerate(events, 1):
        upper = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in name)
        key = f"{name[0].lower()}{name[1:]}EventAttributes"
        event = {"eventId": number, "eventTime": "2026-11-24T09:00:00Z", "eventType": f"EVENT_TYPE{upper}"}
        written.append(event | {key: attributes})
    return WorkflowHistory.from_json("workflow-1", json.dumps({"events": written}))


async def replayed(activity_type: str) -> str:
    """Replays the workflow in Temporal's sandbox, against the history of an activity of this type."""
    replayer = Replayer(workflows=[AskAgent])
    result = await replayer.replay_workflow(history(activity_type), raise_on_replay_failure=False)
    return type(result.replay_failure).__name__


def show(name: str, value) -> None:
    print(json.dumps({"case": name, "value": value}), flush=True)


async def main() -> None:
    # It would log to the standard output.
    Runtime.set_default(Runtime(telemetry=TelemetryConfig(logging=None)))
    first, again = [dataclasses.asdict(await run("answered", "test:sh")) for _ in range(2)]
    show("answer", first)
    show("retry", again)
    show("other", dataclasses.asdict(await run("other", "test:sh")))
    stopped = await ended_by(WORKER_STOPS)
    state = (await AgentActivities(URL, TOKEN).call("GET", f"/api/v1/runs/{stopped[0]}"))["state"]
    show("worker stops", {"run": stopped[0], "seq": stopped[1], "state": state})
    resumed = await ended_by(CANCELLED, stopped)
    show("cancelled", {"run": resumed[0], "seq": resumed[1]})
    show("failed run", await error("failing", "test:broken"))
    show("unknown agent", await error("unknown", "test:none"))
    show("wrong token", await error("wrong", "test:sh", token=os.environ["WRONG_TOKEN"]))
    show("no API", await error("none", "test:sh", url="http://127.0.0.1:1"))
    show("429", await mapped(429, {"retry-after": "7"}))
    show("503", await mapped(503, {}))
    show("workflow", await replayed("run_agent"))
    show("other workflow", await replayed("other"))


asyncio.run(main())
# Threads of the SDK's own may still run while Python finalizes, and then abort the process.
sys.stdout.flush()
os._exit(0)
