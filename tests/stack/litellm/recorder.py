"""Callback for LiteLLM: appends one JSON line per finished call to the file named by LITELLM_RECORD_FILE.

It is what tests compare Sluicegate's journal with. Not a ledger: a line is lost when LiteLLM is killed.
"""

import json
import os

from litellm.integrations.custom_logger import CustomLogger


def record(event, kwargs):
    """One call as LiteLLM itself accounts for it, without prompts and answers."""
    call = kwargs.get("standard_logging_object") or {}
    return {
        "event": event,
        "status": call.get("status"),
        "litellm_call_id": call.get("litellm_call_id"),
        "end_user": call.get("end_user"),
        # x-litellm-session-id arrives as trace_id; without that header it is random, and session_id stays empty.
        "trace_id": call.get("trace_id"),
        "session_id": call.get("session_id"),
        "spend_logs_metadata": (call.get("metadata") or {}).get("spend_logs_metadata"),
        "request_tags": call.get("request_tags"),
        "call_type": call.get("call_type"),
        "model": call.get("model"),
        "model_group": call.get("model_group"),
        "stream": call.get("stream"),  # null when not streamed, and when it failed before the stream began
        "prompt_tokens": call.get("prompt_tokens"),
        "completion_tokens": call.get("completion_tokens"),
        "total_tokens": call.get("total_tokens"),
        "usage": (call.get("metadata") or {}).get("usage_object"),
        "response_cost": call.get("response_cost"),
        "error": call.get("error_str"),
    }


class Recorder(CustomLogger):
    """Writes to the file that was named when LiteLLM started."""

    def __init__(self, path):
        super().__init__()
        self.path = path

    def write(self, event, kwargs):
        # One write in append mode: readers never see half a line.
        line = json.dumps(record(event, kwargs), default=str) + "\n"
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(line)

    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        self.write("success", kwargs)

    async def async_log_failure_event(self, kwargs, response_obj, start_time, end_time):
        self.write("failure", kwargs)


recorder = Recorder(os.environ["LITELLM_RECORD_FILE"])
