"""Streams answers with the official OpenAI SDK, as an agent would: over a unix socket, then over a bridge to it.

usage: sdk_streams.py SOCKET BRIDGE_URL COUNT
"""

import sys

import httpx
from openai import OpenAI


def stream(client, count):
    for _ in range(count):
        chunks = client.chat.completions.create(
            model="fake",
            messages=[{"role": "user", "content": "Say hello."}],
            stream=True,
            stream_options={"include_usage": True},
        )
        text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
        assert text.endswith("a lovely day."), text


socket, bridge, count = sys.argv[1:]
transport = httpx.HTTPTransport(uds=socket)
stream(OpenAI(api_key="none", base_url="http://localhost/v1", http_client=httpx.Client(transport=transport)), int(count))
stream(OpenAI(api_key="none", base_url=f"{bridge}/v1"), int(count))
