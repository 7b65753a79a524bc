"""Prints as one JSON object the fields that the official Python SDKs document for the bodies of each route.

usage: scripts/sdks.sh python tests/sdk/documented.py
"""

import inspect
import json

import anthropic
import openai

# Parameters of the SDK that are not fields of a body; `betas` become a header.
NOT_IN_THE_BODY = {"betas", "extra_body", "extra_headers", "extra_query", "timeout"}

open_ai, claude = openai.OpenAI(api_key="none"), anthropic.Anthropic(api_key="none")
CALLS = {
    "/v1/chat/completions": [open_ai.chat.completions.create, open_ai.chat.completions.parse],
    "/v1/completions": [open_ai.completions.create],
    "/v1/responses": [open_ai.responses.create],
    "/v1/responses/input_tokens": [open_ai.responses.input_tokens.count],
    "/v1/responses/compact": [open_ai.responses.compact],
    "/v1/embeddings": [open_ai.embeddings.create],
    "/v1/messages": [claude.messages.create, claude.beta.messages.create],
    "/v1/messages/count_tokens": [claude.messages.count_tokens, claude.beta.messages.count_tokens],
}
fields = {
    path: sorted({name for call in calls for name in inspect.signature(call).parameters} - NOT_IN_THE_BODY)
    for path, calls in CALLS.items()
}
print(json.dumps(fields))
