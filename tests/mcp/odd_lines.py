"""An MCP server on stdin and stdout whose answers to calls are not quite messages: each tool is one kind of them."""

import json
import sys
import threading

ODD = {
    "lone": rb'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"half \ud83d emoji"}]}}',
    "latin": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}',
    "glued": b'Processing... {"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"works"}]}}',
    "deep": b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"structuredContent":' + b"[" * 20000 + b"]" * 20000 + b"}}",
    "null": b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"the words of the server"}}',
    "foreign": b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-1,"message":"the words of the server"}}',
    "log": b"Traceback: the words of the server",
}
# Calls that are answered by `release` in another session.
held = []


def send(line):
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def answer(request, result):
    send(json.dumps({"jsonrpc": "2.0", "id": request, "result": result}).encode())


def text(words):
    return {"content": [{"type": "text", "text": words}]}


def progress(message, words):
    token = message["params"]["_meta"]["progressToken"]
    params = {"progressToken": token, "progress": 1, "message": words}
    send(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode())


for line in sys.stdin.buffer:
    message = json.loads(line)
    method, request = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
        answer(request, result)
    elif method == "tools/list":
        # In pages of one tool.
        names = [*ODD, "head", "tail", "hang", "steps", "release", "good", *(f"t{n}" for n in range(150))]
        page = int((message.get("params") or {}).get("cursor", 0))
        result = {"tools": [{"name": names[page], "inputSchema": {"type": "object"}}]}
        answer(request, result | ({"nextCursor": str(page + 1)} if page + 1 < len(names) else {}))
    elif method == "tools/call":
        name = message["params"]["name"]
        if name in ODD:
            send(ODD[name] % request if b"%d" in ODD[name] else ODD[name])
        elif name in ("head", "tail"):
            long = b'"result":{"content":[{"type":"text","text":"' + b"x" * (17 << 20) + b'"}]}'
            ends = (b'"jsonrpc":"2.0","id":%d' % request, long)
            send(b"{" + b",".join(ends if name == "head" else ends[::-1]) + b"}")
        elif name == "hang":
            progress(message, "hanging")
            held.append(request)
        elif name == "steps":
            # Longer than its time limit in all, with progress before each is over.
            steps = threading.Event()
            for n in range(12):
                steps.wait(0.5)
                progress(message, f"step {n}")
            answer(request, text("done"))
        elif name == "release":
            for other in held:
                answer(other, text("released"))
            held.clear()
            answer(request, text("good"))
        else:
            answer(request, text("good"))
    elif request is not None:
        send(json.dumps({"jsonrpc": "2.0", "id": request, "error": {"code": -32601, "message": "unknown"}}).encode())
