"""Every kind of call that the official Python SDKs make, against each of several targets; one JSON line per case and
target tells what must be equal for all of them. It judges nothing: tests/stack/sdk.rs compares.

usage: scripts/sdks.sh python tests/sdk/conform.py TARGET...

TARGET is `{"name", "url", "key"}` as JSON, and `"socket"` to reach the URL through a unix socket. A line is `{"target",
"case", "ok", "digest", "calls", "ids", "tokens"}`: `ok` is whether the SDK returned or raised, `ids` are the call ids
that answers carried, `tokens` the last usage the SDK was told.
"""

import json
import sys

import anthropic_cases  # noqa: F401 - for the cases they put on the list
import openai_cases  # noqa: F401
import responses_cases  # noqa: F401
from cases import CASES
from target import Target, comparable, failure, plain, tokens


def run(target, name):
    target.begin()
    try:
        ok, digest = True, plain(CASES[name](target))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the result
        ok, digest = False, failure(error)
    line = {"target": target.name, "case": name, "ok": ok, "digest": comparable(digest)}
    return line | {"calls": target.calls, "ids": target.ids, "tokens": tokens(digest)}


for argument in sys.argv[1:]:
    place = Target(**json.loads(argument))
    for each in CASES:
        print(json.dumps(run(place, each)), flush=True)
