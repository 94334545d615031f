"""A stand-in for a model behind the OpenAI chat API: it follows a script, and is as strict as the real API.

Run alone, it serves the scene of the tests: `python3 stand_in.py` prints the URL for `agent.py --url`.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Message = dict[str, Any]

# One turn of the model: its last message, or calls as (name, arguments).
Turn = str | list[tuple[str, dict[str, Any]]]

SCENE: list[Turn] = [
    # Several calls at once, one of which fails.
    [("read", {"path": "notes.txt"}), ("grep", {"pattern": "tea", "path": "."}), ("read", {"path": "no_such_file"})],
    # One that needs permission.
    [("bash", {"command": "touch report.txt"})],
    # More than the user wants to wait for.
    [("bash", {"command": "echo the first begins; head -n 1 gate"})]
    + [("bash", {"command": f"touch unwanted-{n}"}) for n in (1, 2)],
    "I stopped, as you said. The report is there.",
]


class StandIn:
    """Serves the script on a free port of this machine. `requests` are those that it has received."""

    def __init__(self, script: list[Turn]) -> None:
        self.script = script
        self.requests: list[Message] = []
        self._lock = threading.Lock()
        stand_in = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = stand_in.answer(self.path, body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def answer(self, path: str, body: bytes) -> tuple[int, Message]:
        try:
            if path != "/v1/chat/completions":
                raise ValueError(f"unknown path {path}")
            request = json.loads(body)
            check(request)
        except ValueError as error:
            return 400, {"error": {"message": str(error), "type": "invalid_request_error"}}
        with self._lock:
            turn = len(self.requests)
            self.requests.append(request)
        if turn >= len(self.script):
            return 400, {"error": {"message": "the script is over", "type": "invalid_request_error"}}
        reply = self.script[turn]
        message: Message = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
        if not isinstance(reply, str):
            message["tool_calls"] = [
                {
                    "id": f"call_{turn}_{n}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(arguments)},
                }
                for n, (name, arguments) in enumerate(reply)
            ]
        choice = {"index": 0, "message": message, "finish_reason": "stop" if isinstance(reply, str) else "tool_calls"}
        return 200, {"id": f"turn_{turn}", "object": "chat.completion", "model": "stand-in", "choices": [choice]}

    def __enter__(self) -> StandIn:
        self._thread = threading.Thread(target=self.server.serve_forever)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


def check(request: Message) -> None:
    """Refuses what the API refuses: invalid tools, and calls without exactly one answer before the next message."""
    for tool in request["tools"]:
        function = tool["function"]
        if tool["type"] != "function" or function["parameters"]["type"] != "object":
            raise ValueError(f"tools: {tool} is not a function")
    open_calls: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise ValueError(f"messages: {message['tool_call_id']} answers no call")
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            raise ValueError(f"messages: {open_calls} must be answered before {message['role']} speaks")
        if message["role"] == "assistant":
            open_calls = [call["id"] for call in message.get("tool_calls") or []]
    if open_calls:
        raise ValueError(f"messages: {open_calls} are not answered")


if __name__ == "__main__":
    with StandIn(SCENE) as serving:
        print(serving.url, flush=True)
        threading.Event().wait()
