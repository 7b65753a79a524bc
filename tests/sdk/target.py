"""Connects the official SDKs to one server of a model API, and extracts the values of answers that must be equal for all
servers. conform.py defines the calls.
"""

import anthropic
import httpx2
import openai

# Fields that differ from answer to answer, with any server.
NEVER_EQUAL = {
    "call_id", "completed_at", "created", "created_at", "encrypted_content", "id", "item_id", "obfuscation",
    "system_fingerprint",
}  # fmt: skip


def is_compared(name, value):
    """Leaves out `"usage": null`, which equals no usage, and the price: LiteLLM learns it after a model's first call."""
    return name != "cost" and not (name == "usage" and value is None)


class Target:
    """A server: a base URL, a key, and for a run's own listener its socket."""

    def __init__(self, name, url, key, socket=None):
        self.name = name
        # On a unix socket, the path of a URL is used and its host is ignored.
        self.openai = openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=self.client(socket))
        self.anthropic = anthropic.Anthropic(
            base_url=url, api_key=key, max_retries=0, http_client=self.client(socket)
        )
        self.async_openai = lambda: openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key=key, max_retries=0, http_client=self.async_client(socket)
        )
        self.async_anthropic = lambda: anthropic.AsyncAnthropic(
            base_url=url, api_key=key, max_retries=0, http_client=self.async_client(socket)
        )
        self.begin()

    def begin(self):
        """Forgets the calls of the last case."""
        self.calls, self.ids = 0, []

    def count_request(self, _request):
        self.calls += 1

    def note_answer(self, response):
        self.ids.append(response.headers.get("x-litellm-call-id"))

    # `verify=False`: no target uses TLS, and loading certificates takes long.
    def client(self, socket):
        hooks = {"request": [self.count_request], "response": [self.note_answer]}
        return httpx2.Client(transport=httpx2.HTTPTransport(uds=socket, verify=False), event_hooks=hooks)

    def async_client(self, socket):
        async def count_request(request):
            self.count_request(request)

        async def note_answer(response):
            self.note_answer(response)

        hooks = {"request": [count_request], "response": [note_answer]}
        return httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=socket, verify=False), event_hooks=hooks)


def plain(value):
    """Converts an SDK's objects to the types of JSON."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json", exclude_unset=True, warnings=False))
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def comparable(value):
    """Replaces the values of fields that are never equal by their presence."""
    if isinstance(value, dict):
        kept = {name: inner for name, inner in value.items() if is_compared(name, inner)}
        return {name: inner is not None if name in NEVER_EQUAL else comparable(inner) for name, inner in kept.items()}
    if isinstance(value, list):
        return [comparable(inner) for inner in value]
    return value


def failure(error):
    """Returns the part of an error that programs use: its class, status, type and code. Messages are for people."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    inner = inner if isinstance(inner, dict) else {}
    result = {"class": type(error).__name__, "status": getattr(error, "status_code", None)}
    return result | {"type": inner.get("type"), "code": inner.get("code")}


def tokens(value):
    """Returns the last usage in `value`, or None."""
    last = None
    if isinstance(value, dict):
        usage = value.get("usage")
        if isinstance(usage, dict):
            last = usage
        candidates = [inner for inner in value.values() if isinstance(inner, (dict, list))]
    else:
        candidates = value if isinstance(value, list) else []
    for candidate in candidates:
        last = tokens(candidate) or last
    return last
