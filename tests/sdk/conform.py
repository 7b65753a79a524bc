"""Makes every kind of call that the official Python SDKs support, against each of several targets. Prints one JSON line
per case and target, with the values that must be equal for all targets. tests/clients/sdk.rs compares them.

usage: scripts/sdks.sh python tests/sdk/conform.py TARGET...

TARGET is `{"name", "url", "key"}` as JSON, and `"socket"` to reach the URL through a unix socket. A line is `{"target",
"case", "ok", "digest", "calls", "ids", "tokens"}`: `ok` is whether the SDK returned or raised, `ids` are the call ids
that answers carried, `tokens` the last usage that the SDK received.
"""

import json
import sys

import anthropic_cases  # noqa: F401 - the import adds its cases to the list
import openai_cases  # noqa: F401
import responses_cases  # noqa: F401
from cases import CASES
from target import Target, comparable, failure, plain, tokens


def run(target, name):
    target.begin()
    try:
        ok, digest = True, plain(CASES[name](target))
    except Exception as error:  # noqa: BLE001 - any error is the result
        ok, digest = False, failure(error)
    line = {"target": target.name, "case": name, "ok": ok, "digest": comparable(digest)}
    return line | {"calls": target.calls, "ids": target.ids, "tokens": tokens(digest)}


for argument in sys.argv[1:]:
    target = Target(**json.loads(argument))
    for name in CASES:
        print(json.dumps(run(target, name)), flush=True)
