"""One place where a model API is served, the official SDKs' clients for it, and what of their answers must be equal
wherever they come from. Which calls are made is said in conform.py.
"""

import anthropic
import httpx2
import openai

# Differ from answer to answer, whoever gives it.
NEVER_EQUAL = {
    "call_id", "completed_at", "created", "created_at", "encrypted_content", "id", "item_id", "obfuscation",
    "system_fingerprint",
}  # fmt: skip


def counts(name, value):
    """`"usage": null` says what no usage says; LiteLLM knows a price only from some time after a model's first call."""
    return name != "cost" and not (name == "usage" and value is None)


class Target:
    """A base URL, a key, and for a run's own listener its socket."""

    def __init__(self, name, url, key, socket=None):
        self.name = name
        # The path of an URL on a unix socket counts, its host does not.
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

    def asked(self, _request):
        self.calls += 1

    def answered(self, response):
        self.ids.append(response.headers.get("x-litellm-call-id"))

    # Nothing here is encrypted, and certificates take long to load.
    def client(self, socket):
        hooks = {"request": [self.asked], "response": [self.answered]}
        return httpx2.Client(transport=httpx2.HTTPTransport(uds=socket, verify=False), event_hooks=hooks)

    def async_client(self, socket):
        async def asked(request):
            self.asked(request)

        async def answered(response):
            self.answered(response)

        hooks = {"request": [asked], "response": [answered]}
        return httpx2.AsyncClient(transport=httpx2.AsyncHTTPTransport(uds=socket, verify=False), event_hooks=hooks)


def plain(value):
    """As JSON would have it, whatever the SDK made of it."""
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json", exclude_unset=True, warnings=False))
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value


def comparable(value):
    """The same without what is never equal: only that it is there."""
    if isinstance(value, dict):
        told = {name: inner for name, inner in value.items() if counts(name, inner)}
        return {name: inner is not None if name in NEVER_EQUAL else comparable(inner) for name, inner in told.items()}
    if isinstance(value, list):
        return [comparable(inner) for inner in value]
    return value


def failure(error):
    """What a program can tell of an error: its class, and what classes are sorted by. Messages are words for people."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    inner = inner if isinstance(inner, dict) else {}
    told = {"class": type(error).__name__, "status": getattr(error, "status_code", None)}
    return told | {"type": inner.get("type"), "code": inner.get("code")}


def tokens(value):
    """Tokens in and out that the last usage in `value` tells; None if none does."""
    told = None
    if isinstance(value, dict):
        usage = value.get("usage")
        if isinstance(usage, dict):
            told = usage
        candidates = [inner for inner in value.values() if isinstance(inner, (dict, list))]
    else:
        candidates = value if isinstance(value, list) else []
    for candidate in candidates:
        told = tokens(candidate) or told
    return told
