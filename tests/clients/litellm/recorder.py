"""Appends one JSON line per finished LiteLLM call to the file named by LITELLM_RECORD_FILE, and tells the provider each
call's id, so that the ledger of the scripted upstream has it.

Tests compare Sluicegate's journal with these lines. Not a ledger: a killed LiteLLM loses lines.
"""

import json
import os

from garbage import collect_on_a_thread
from litellm.integrations.custom_logger import CustomLogger

collect_on_a_thread()


def record(event, kwargs):
    """Returns one call as LiteLLM accounts for it, without prompts and answers."""
    call = kwargs.get("standard_logging_object") or {}
    return {
        "event": event,
        "status": call.get("status"),
        "litellm_call_id": call.get("litellm_call_id"),
        "end_user": call.get("end_user"),
        # LiteLLM reports x-litellm-session-id as trace_id. Without that header, trace_id is random and session_id empty.
        "trace_id": call.get("trace_id"),
        "session_id": call.get("session_id"),
        "spend_logs_metadata": (call.get("metadata") or {}).get("spend_logs_metadata"),
        "request_tags": call.get("request_tags"),
        "call_type": call.get("call_type"),
        "model": call.get("model"),
        "model_group": call.get("model_group"),
        "stream": call.get("stream"),  # null for calls that are not streamed or failed before the stream began
        "prompt_tokens": call.get("prompt_tokens"),
        "completion_tokens": call.get("completion_tokens"),
        "total_tokens": call.get("total_tokens"),
        "usage": (call.get("metadata") or {}).get("usage_object"),
        "response_cost": call.get("response_cost"),
        "error": call.get("error_str"),
    }


class Recorder(CustomLogger):
    """Appends records of calls to the file at `path`."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def write(self, event, kwargs):
        # Append mode: calls that end together do not overwrite each other. Readers ignore a line without its end.
        line = json.dumps(record(event, kwargs), default=str) + "\n"
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line)

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        headers = data.get("extra_headers") or {}
        data["extra_headers"] = {**headers, "x-test-call-id": data.get("litellm_call_id")}
        return data

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        self.write("success", kwargs)

    async def async_log_failure_event(self, kwargs, response_obj, start_time, end_time):
        self.write("failure", kwargs)


recorder = Recorder(os.environ["LITELLM_RECORD_FILE"])
