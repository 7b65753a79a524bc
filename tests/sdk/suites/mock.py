"""A mock of both APIs that takes everything: each call is answered 200 with an object, or with a short stream."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = {
    "id": "x_1", "object": "x", "type": "message", "role": "assistant", "model": "m", "content": [], "data": [],
    "choices": [], "output": [], "has_more": False, "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
# The SDK decodes vectors, so that there has to be one.
VECTOR = {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}]}
EVENT = {"type": "message_stop", "id": "x_1", "choices": []}


class Mock(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            streams = json.loads(body).get("stream") is True
        except (ValueError, AttributeError):
            streams = False
        if streams:
            kind, text = "text/event-stream", f"event: message_stop\ndata: {json.dumps(EVENT)}\n\ndata: [DONE]\n\n"
        else:
            kind, text = "application/json", json.dumps(VECTOR if self.path.endswith("/embeddings") else ANSWER)
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A client that leaves early is not an error."""


def serve():
    """Returns a mock that is ready to serve."""
    return Server(("127.0.0.1", 0), Mock)
