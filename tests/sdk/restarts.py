"""Makes calls one after the other with the Python SDK in its default settings, retries included. Prints the end of each
call as one JSON line.

usage: scripts/sdks.sh python tests/sdk/restarts.py URL COUNT
"""

import json
import sys
import time

import openai

url, count = sys.argv[1], int(sys.argv[2])
client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
for _ in range(count):
    began = time.monotonic()
    try:
        raw = client.chat.completions.with_raw_response.create(
            model="fake-firstbyte100ms", messages=[{"role": "user", "content": "hi"}]
        )
        end = {"ok": bool(raw.parse().choices[0].message.content), "retries": raw.retries_taken}
    except openai.OpenAIError as error:
        end = {"ok": False, "error": repr(error)}
    print(json.dumps(end | {"seconds": round(time.monotonic() - began, 3)}), flush=True)
