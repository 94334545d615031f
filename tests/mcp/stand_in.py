"""An MCP server that misbehaves on demand. One message a line on stdin and stdout, or on a socket.

    stand_in.py [--modern] [--late] [--tools N] [--hostile] [--list FILE] [--mute] [--die] [--socket PATH]
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import threading

parser = argparse.ArgumentParser()
parser.add_argument("--modern", action="store_true", help="the stateless life of 2026-07-28 alone")
parser.add_argument("--late", action="store_true", help="answers server/discover once initialize has come too")
parser.add_argument("--tools", type=int, default=0, help="so many more tools")
parser.add_argument("--hostile", action="store_true", help="names, schemas and texts that nobody should take as they are")
parser.add_argument("--list", help="a file with more tools, read at each tools/list")
parser.add_argument("--mute", action="store_true", help="says nothing at all")
parser.add_argument("--die", action="store_true", help="ends at once")
parser.add_argument("--socket", help="serves the first client of a Unix socket")
options = parser.parse_args()

lock = threading.Lock()
held = {}
cancelled = []
answers = {}
next_id = 1000
source, sink = sys.stdin.buffer, sys.stdout.buffer


def send(message):
    with lock:
        sink.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sink.flush()


def text(words, **more):
    result = {"content": [{"type": "text", "text": words}], **more}
    return {"resultType": "complete", **result} if options.modern else result


def tool(name, description="", **more):
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def tools():
    listed = [
        tool("echo", "Says it again", title="Echo", annotations={"readOnlyHint": True}),
        tool("where", "Where it runs, and with what"),
        tool("steps", "Tells of its progress", annotations={"readOnlyHint": True}),
        tool("hold", "Answers when it is released", annotations={"readOnlyHint": True}),
        tool("release", annotations={"readOnlyHint": True}),
        tool("hang", annotations={"readOnlyHint": True}),
        tool("cancelled", "The calls that it was asked to cancel"),
        tool("die"),
        tool("leave_child"),
        tool("flood"),
        tool("garbage"),
        tool("refuse"),
        tool("ask", "Asks a person", annotations={"readOnlyHint": True}),
        tool("roots"),
        tool("announce"),
        tool("readFile", "Its name is not one of ours"),
        tool("counts", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    ]
    listed += [tool(f"t{n}") for n in range(options.tools)]
    if options.hostile:
        listed += [
            tool("x" * 300),
            tool("a\nb"),
            tool("../../etc"),
            tool("größe"),
            tool("read-file"),
            tool("long", "é" * 100_000),
            tool("hidden", "Harmless.\u202e\U000e0041\U000e0042"),
            {"name": "typed", "inputSchema": {"type": "nonsense"}},
            {"name": "away", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/"}}}},
            {"name": 7},
            "nonsense",
        ]
    if options.list and os.path.exists(options.list):
        with open(options.list) as file:
            listed += json.load(file)
    return listed


def tell_progress(meta, words):
    if "progressToken" in meta:
        progress = {"progressToken": meta["progressToken"], "progress": 1, "message": words}
        send({"method": "notifications/progress", "params": progress})


def call(request, params):
    name, given = params["name"], params.get("arguments") or {}
    meta = params.get("_meta") or {}
    if name == "echo":
        return text(str(given.get("text", "")))
    if name == "where":
        seen = {"pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ), "meta": meta, "args": sys.argv[1:]}
        return text(json.dumps(seen))
    if name == "steps":
        for n in range(given["n"]):
            progress = {"progressToken": meta["progressToken"], "progress": n + 1, "total": given["n"], "message": f"step {n + 1}"}
            send({"method": "notifications/progress", "params": progress})
        # To nobody: no call has this token.
        send({"method": "notifications/progress", "params": {"progressToken": "nobody", "progress": 1}})
        return text("done")
    if name == "hold":
        held[given["key"]] = request
        tell_progress(meta, "holding")
        return None
    if name == "release":
        send({"id": held.pop(given["key"]), "result": text(given["key"])})
        return text("released")
    if name == "hang":
        tell_progress(meta, "hanging")
        return None
    if name == "cancelled":
        return text(json.dumps(cancelled))
    if name == "die":
        print("I am dying of", given.get("of", "boredom"), file=sys.stderr, flush=True)
        os._exit(3)
    if name == "leave_child":
        child = subprocess.Popen(["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL)
        return text(str(child.pid))
    if name == "flood":
        for n in range(20_000):
            print("flood", n, "." * 80, file=sys.stderr)
        sys.stderr.flush()
        return text("flooded")
    if name == "garbage":
        with lock:
            sink.write(b'{"jsonrpc": "2.0", "id": \n\xff\xfe not json\n[]\n{"id": 99999, "result": 1}\n7\n\n')
            sink.flush()
        return text("tidy again")
    if name == "refuse":
        raise ValueError("not today")
    if name == "ask":
        return ask(request, params)
    if name == "roots":
        return later(request, "roots/list", {})
    if name == "announce":
        send({"method": "notifications/tools/list_changed"})
        return text("announced")
    if name == "counts":
        return text("{}", structuredContent={"n": given.get("n")})
    if name == "given":
        return text(json.dumps(given))
    return text(f"{name} was called")


FORM = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}


def ask(request, params):
    form = {"mode": "form", "message": "Which color?", "requestedSchema": FORM}
    if not options.modern:
        return later(request, "elicitation/create", form)
    if "inputResponses" not in params:
        requests = {"color": {"method": "elicitation/create", "params": form}}
        return {"resultType": "input_required", "inputRequests": requests, "requestState": "sealed"}
    return text(json.dumps({"answer": params["inputResponses"], "state": params.get("requestState")}))


def later(request, method, params):
    """Asks the client, and answers the request with its answer."""
    global next_id
    next_id += 1
    answers[next_id] = request
    send({"id": next_id, "method": method, "params": params})


META = "io.modelcontextprotocol/"


def handle(message):
    method, request, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        if request in answers:
            said = message.get("result", message.get("error"))
            send({"id": answers.pop(request), "result": text(json.dumps(said))})
        return
    if method == "notifications/cancelled":
        cancelled.append(params.get("reason"))
        return
    if request is None:
        return
    try:
        if options.modern and META + "protocolVersion" not in (params.get("_meta") or {}):
            raise ValueError("which protocol?")
        if method == "server/discover" and options.modern:
            result = {
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}},
                "ttlMs": 0, "cacheScope": "private", "_meta": {META + "serverInfo": {"name": "stand-in", "version": "1"}},
            }
        elif method == "initialize" and not options.modern:
            result = {
                "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "stand-in", "version": "1"},
            }
        elif method == "tools/list":
            listed, at = tools(), int(params.get("cursor") or 0)
            result = {"tools": listed[at:at + 1000]}
            if at + 1000 < len(listed):
                result["nextCursor"] = str(at + 1000)
            if options.modern:
                result |= {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"}
        elif method == "tools/call":
            result = call(request, params)
        elif method == "subscriptions/listen" and options.modern:
            meta = {META + "subscriptionId": request}
            noted = {"_meta": meta, "notifications": params["notifications"]}
            send({"method": "notifications/subscriptions/acknowledged", "params": noted})
            return
        else:
            send({"id": request, "error": {"code": -32601, "message": f"no {method} here"}})
            return
    except Exception as error:
        send({"id": request, "error": {"code": -32602, "message": str(error)}})
        return
    if result is not None:
        send({"id": request, "result": result})


if options.die:
    print("no reason to live", file=sys.stderr, flush=True)
    sys.exit(7)
if options.socket:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(options.socket)
        listening.listen()
        client, _ = listening.accept()
    source, sink = client.makefile("rb"), client.makefile("wb")
early = []
for line in source:
    if options.mute:
        continue
    message = json.loads(line)
    if options.late and message.get("method") == "server/discover":
        early.append(message)
        continue
    if message.get("method") == "initialize":
        while early:
            handle(early.pop())
    handle(message)
