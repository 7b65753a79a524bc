"""Defines the parts that all cases share: messages, tools, and the list of cases."""

import pydantic

# Any upstream reads its script from the model's name: see bench/src/upstream/script and tests/sdk/aimock.json.
MODEL, TOOLS, LONG = "fake", "fake-tools", "fake-words1000-gap20ms"
HELLO = [{"role": "user", "content": "Say hello."}]
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
FUNCTION = {"name": "get_weather", "description": "What the sky does.", "parameters": CITY, "strict": True}
# Statuses that the SDKs have error classes for.
STATUSES = (400, 404, 429, 500, 503)
CASES = {}


def case(named):
    """Adds a function to the cases, under its own name or a given one. Its result must be equal for all targets."""
    if isinstance(named, str):
        return lambda function: CASES.setdefault(named, function)
    return CASES.setdefault(named.__name__, named)


def turn(*content):
    """Returns a user's message with several parts."""
    return [{"role": "user", "content": list(content)}]


class Answer(pydantic.BaseModel):
    """Shape of a structured answer. Scripted answers do not have it, so the SDK's error is compared."""

    city: str
