"""What all cases are made of: the questions, and the list that a case puts itself on."""

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
# Those that the SDKs have classes for.
STATUSES = (400, 404, 429, 500, 503)
CASES = {}


def case(named):
    """Makes a case of a function from a target to what must be equal; its name is the case's, unless it is given."""
    if isinstance(named, str):
        return lambda function: CASES.setdefault(named, function)
    return CASES.setdefault(named.__name__, named)


def turn(*content):
    """A user's message with several parts."""
    return [{"role": "user", "content": list(content)}]


class Answer(pydantic.BaseModel):
    """What structured answers are to look like. The scripted ones do not: the SDK's complaint is compared then."""

    city: str
