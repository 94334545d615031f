"""An MCP server of revision 2024-11-05 on HTTP with SSE, which misbehaves on demand. Prints its address.

The first part of the path chooses the behavior: /good/sse, /login/sse, ... What it saw is at /seen.
"""

import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
seen = {"requests": [], "tokens": [], "cancelled": []}
streams, asked = {}, {}

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "steps", "hang", "cut", "ask", "refused")]
FORM = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, text="", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def event(self, kind, data):
        self.wfile.write(f"event: {kind}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def note(self):
        with lock:
            seen["requests"].append(f"{self.command} {self.path.split('?')[0]}")
            seen["tokens"].append(self.headers.get("X-Token"))

    def do_GET(self):
        if self.path == "/seen":
            return self.send(200, json.dumps(seen))
        self.note()
        behavior = self.path.split("/")[1]
        if behavior == "none":
            return self.send(404, "nothing here")
        if behavior == "login":
            return self.send(401, "", [("WWW-Authenticate", "Bearer")])
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        if behavior == "ended":
            return
        if behavior == "unnamed":
            return self.event("message", "{}")
        if behavior == "foreign":
            # Another name of this machine is another origin.
            return self.event("endpoint", f"http://localhost:{self.server.server_port}/good/messages?stream=x")
        if behavior == "endless":
            self.wfile.write(b"event: endpoint\ndata: /")
            try:
                while True:
                    self.wfile.write(b"x" * (1 << 20))
            except OSError:
                return
        messages = queue.Queue()
        with lock:
            name = str(len(streams))
            streams[name] = messages
        if behavior == "silent":
            messages.get()
        self.event("endpoint", f"/{behavior}/messages?stream={name}")
        # Not a message, and none in JSON.
        self.event("ping", "now")
        self.event("message", "not JSON")
        while (message := messages.get()) is not None:
            self.event("message", json.dumps({"jsonrpc": "2.0", **message}))

    def do_POST(self):
        self.note()
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path, _, name = self.path.partition("?stream=")
        if not path.endswith("/messages"):
            return self.send(405, "Method Not Allowed")
        message = json.loads(body)
        if message.get("method") == "tools/call" and message["params"]["name"] == "refused":
            return self.send(404, "no such stream")
        # Servers of this transport differ in how they say that they took it.
        self.send(*((202, "Accepted") if "id" in message else (200, "ok")))
        self.answer(streams[name], message)

    def answer(self, stream, message):
        method, request = message.get("method"), message.get("id")
        if method is None:
            stream.put(tool_result(asked.pop(request), json.dumps(message["result"])))
        elif method == "notifications/cancelled":
            seen["cancelled"].append(message["params"].get("reason"))
        elif method == "initialize":
            result = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}}}
            stream.put({"id": request, "result": result | {"serverInfo": {"name": "older", "version": "1"}}})
        elif method == "tools/list":
            stream.put({"id": request, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            self.call(stream, request, message["params"])
        elif request is not None:
            stream.put({"id": request, "error": {"code": -32601, "message": f"no {method} here"}})

    def call(self, stream, request, params):
        name, given = params["name"], params.get("arguments") or {}
        if name == "echo":
            stream.put(tool_result(request, given.get("text", "")))
        elif name == "steps":
            token = params["_meta"]["progressToken"]
            for n in (1, 2, 3):
                progress = {"progressToken": token, "progress": n, "message": f"step {n}"}
                stream.put({"method": "notifications/progress", "params": progress})
            stream.put(tool_result(request, "done"))
        elif name == "cut":
            stream.put(None)
        elif name == "ask":
            asked["q"] = request
            form = {"message": "Which color?", "requestedSchema": FORM}
            stream.put({"id": "q", "method": "elicitation/create", "params": form})
        elif name == "hang":
            token = params["_meta"]["progressToken"]
            progress = {"progressToken": token, "progress": 1, "message": "hanging"}
            stream.put({"method": "notifications/progress", "params": progress})


def tool_result(request, text):
    return {"id": request, "result": {"content": [{"type": "text", "text": text}]}}


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
