"""An MCP server of revision 2025-06-18 on Streamable HTTP, which misbehaves on demand. Prints its address.

The first part of the path chooses the behavior: /good/mcp, /late/mcp, /400-null/mcp, ... A POST to /open opens the streams of
`late`, which are held back until then.
"""

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

opened, listening = threading.Event(), set()
# The sessions that `forgetful` knows: none of those that it has ended by itself.
sessions, calls = set(), {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, status, text="", kind="application/json", headers=()):
        body = text if isinstance(text, bytes) else text.encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        behavior = self.path.split("/")[1]
        if behavior != "late":
            return self.send(405)
        opened.wait()
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        listening.add(self.headers["Mcp-Session-Id"])
        self.wfile.flush()
        # Until the client has closed it.
        self.rfile.read(1)

    def do_DELETE(self):
        self.send(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/open":
            opened.set()
            return self.send(200)
        behavior = self.path.split("/")[1]
        if behavior.startswith("to"):
            return self.send(int(behavior[2:]), headers=[("Location", "/good/mcp")])
        if behavior == "away":
            # Another name of this machine is another origin.
            return self.send(307, headers=[("Location", f"http://localhost:{self.server.server_port}/good/mcp?key=secret")])
        message, session = json.loads(body), self.headers.get("Mcp-Session-Id")
        request, method = message.get("id"), message.get("method")
        if request is None or method is None:
            return self.send(202)
        if method == "initialize":
            session = uuid.uuid4().hex
            sessions.add(session)
            result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
            result["serverInfo"] = {"name": "http", "version": "1"}
            return self.send(200, answer(request, result=result), headers=[("Mcp-Session-Id", session)])
        if method == "tools/list":
            return self.send(200, answer(request, result={"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}))
        if method != "tools/call":
            return self.send(200, answer(request, error={"code": -32601, "message": f"no {method} here"}))
        self.call(behavior, request, session)

    def call(self, behavior, request, session):
        good = {"content": [{"type": "text", "text": "good"}]}
        if behavior == "late" and session not in listening:
            return self.send(200, answer(request, error={"code": 1, "message": "the stream is not open"}))
        if behavior == "forgetful":
            calls[session] = calls.get(session, 0) + 1
            if calls[session] > 1:
                error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
                return self.send(400, answer(None, error=error))
        if behavior.startswith("sse-"):
            texts = {
                "sse-foreign": answer("server-error", error={"code": -1, "message": "the words of the server"}),
                "sse-text": "Traceback: the words of the server",
                "sse-good": answer(request, result=good),
                "sse-bare": json.dumps({"result": good}),
            }
            return self.send(200, f"data: {texts[behavior]}\n\n", "text/event-stream")
        status, _, kind = behavior.partition("-")
        if not kind:
            return self.send(200, answer(request, result=good))
        error = {"code": -32000, "message": "the words of the server"}
        texts = {
            "null": answer(None, error=error),
            "foreign": answer("server-error", error=error),
            "none": json.dumps({"jsonrpc": "2.0", "error": error}),
            "plain": json.dumps({"detail": "the words of the server"}),
        }
        self.send(int(status), texts[kind])


def answer(request, **more):
    return json.dumps({"jsonrpc": "2.0", "id": request, **more})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
