"""Uses agents as models through OpenAI's SDK for Python and LangChain. Prints one JSON line per client and case.
tests/clients/chat_clients.rs has what each must say; facade.mjs has the same cases for Node.

usage: TOKEN=... scripts/chat-clients.sh python tests/sdk/facade.py URL
"""

import json
import os
import sys

import openai
from langchain_openai import ChatOpenAI

URL = sys.argv[1] + "/v1"
TOKEN = os.environ["TOKEN"]
MESSAGES = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "one"}]


def outcome(call):
    """Returns the class of the error of a call, with its status and code."""
    try:
        return call()
    except openai.OpenAIError as error:
        code = getattr(error, "code", None)
        return [type(error).__name__, getattr(error, "status_code", None), code]


def usage(value):
    return [value.prompt_tokens > 0, value.completion_tokens > 0]


class OpenAi:
    """The SDK, with its own retries."""

    def __init__(self, key=TOKEN):
        self.client = openai.OpenAI(base_url=URL, api_key=key)
        self.create = self.client.chat.completions.create

    def models(self):
        return sorted(model.id for model in self.client.models.list() if model.id.startswith("test:"))

    def model(self):
        return self.client.models.retrieve("test:sh").object

    def whole(self):
        answer = self.create(model="test:sh", messages=MESSAGES)
        return answer.choices[0].message.content

    def metered(self):
        return usage(self.create(model="test:model", messages=MESSAGES).usage)

    def streamed(self):
        stream = self.create(
            model="test:model", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        chunks = list(stream)
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        ends = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
        return [bool(text), ends, usage(chunks[-1].usage)]

    def unknown(self):
        return outcome(lambda: self.create(model="test:none", messages=MESSAGES))

    def invalid(self):
        return outcome(lambda: self.create(model="test:sh", messages=[]))

    def failed(self):
        return outcome(lambda: self.create(model="test:fails", messages=MESSAGES))

    def failed_streamed(self):
        return outcome(lambda: list(self.create(model="test:fails", messages=MESSAGES, stream=True)))

    def repeated(self):
        headers = {"Idempotency-Key": "python"}
        ids = [self.create(model="test:sh", messages=MESSAGES, extra_headers=headers).id for _ in range(2)]
        return len(set(ids))

    def cancelled(self):
        with self.create(model="test:long", messages=MESSAGES, stream=True) as stream:
            first = next(stream)
        return first.id.removeprefix("chatcmpl-")

    def unauthenticated(self):
        return outcome(OpenAi("wrong").models)


class LangChain:
    """LangChain's client of OpenAI's API, with its own retries."""

    def model(self, model, key=TOKEN):
        return ChatOpenAI(model=model, base_url=URL, api_key=key, stream_usage=True)

    def whole(self):
        return self.model("test:sh").invoke([("system", "Be short."), ("human", "one")]).content

    def metered(self):
        used = self.model("test:model").invoke("one").usage_metadata
        return [used["input_tokens"] > 0, used["output_tokens"] > 0]

    def streamed(self):
        whole = None
        for chunk in self.model("test:model").stream("one"):
            whole = chunk if whole is None else whole + chunk
        used = whole.usage_metadata
        return [bool(whole.content), [whole.response_metadata["finish_reason"]],
                [used["input_tokens"] > 0, used["output_tokens"] > 0]]  # fmt: skip

    def unknown(self):
        return outcome(lambda: self.model("test:none").invoke("one"))

    def failed(self):
        return outcome(lambda: self.model("test:fails").invoke("one"))

    def cancelled(self):
        stream = self.model("test:long").stream("one")
        first = next(stream)
        stream.close()
        return first.id.removeprefix("chatcmpl-")

    def unauthenticated(self):
        return outcome(lambda: self.model("test:sh", "wrong").invoke("one"))


CASES = [
    "models", "model", "whole", "metered", "streamed", "unknown", "invalid", "failed", "failed_streamed", "repeated",
    "cancelled", "unauthenticated",
]  # fmt: skip
LANGCHAIN = ["whole", "metered", "streamed", "unknown", "failed", "cancelled", "unauthenticated"]
for name, client, cases in [("openai", OpenAi(), CASES), ("langchain", LangChain(), LANGCHAIN)]:
    for case in cases:
        value = getattr(client, case)()
        print(json.dumps({"client": name, "case": case, "value": value}), flush=True)
