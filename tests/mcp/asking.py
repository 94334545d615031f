"""An MCP server that asks its client, and logs, as its calls tell it to. One message a line on stdin and stdout.

    asking.py [--modern] [--roots-at-start]
"""

import argparse
import json
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--modern", action="store_true", help="the stateless life of 2026-07-28 alone")
parser.add_argument("--roots-at-start", action="store_true", help="asks for roots as soon as it is connected")
options = parser.parse_args()

META = "io.modelcontextprotocol/"
# By id of a request to the client: what is done with its answer.
waiting = {}
late = []
seen = {"levels": [], "roots_changed": 0, "refused": 0}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words):
    result = {"content": [{"type": "text", "text": words if isinstance(words, str) else json.dumps(words)}]}
    return {"resultType": "complete", **result} if options.modern else result


def ask(method, params, then):
    request = f"r{len(waiting)}"
    waiting[request] = then
    send({"id": request, "method": method, "params": params})
    return request


def call(request, params):
    name, given, meta = params["name"], params.get("arguments") or {}, params.get("_meta") or {}
    if name == "ask":
        times = given.get("times", 1)
        if options.modern:
            if "inputResponses" in params:
                return text([params["inputResponses"][f"r{n}"] for n in range(times)])
            asked = {"method": given["method"], "params": given.get("params", {})}
            return {"resultType": "input_required", "inputRequests": {f"r{n}": asked for n in range(times)}}
        answers = []

        def then(answer):
            answers.append(answer)
            if len(answers) == times:
                send({"id": request, "result": text(answers)})

        for _ in range(times):
            ask(given["method"], given.get("params", {}), then)
        return None
    if name == "ask_and_end":
        asked = ask(given["method"], given.get("params", {}), late.append)
        if given.get("cancel"):
            send({"method": "notifications/cancelled", "params": {"requestId": asked}})
        return text("ended")
    if name == "ask_and_hold":
        ask(given["method"], given.get("params", {}), late.append)
        seen["held"] = request
        return None
    if name == "late":
        return text(late)
    if name == "log":
        for n in range(given.get("times", 1)):
            send({"method": "notifications/message", "params": {**given["message"], "data": given["message"].get("data", n)}})
        return text("logged")
    if name == "hold":
        seen["held"] = request
        if "progressToken" in meta:
            progress = {"progressToken": meta["progressToken"], "progress": 1, "message": "holding"}
            send({"method": "notifications/progress", "params": progress})
        return None
    if name == "tell":
        send({"id": seen.pop("held"), "result": text(seen)})
        return text("told")
    if name == "seen":
        return text({**seen, "meta": meta})
    raise ValueError(f"no tool {name}")


TOOLS = ["ask", "ask_and_end", "ask_and_hold", "late", "log", "hold", "tell", "seen"]


def handle(message):
    method, request, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        seen["refused"] += message.get("error", {}).get("code") == -32600
        waiting[request](message.get("result", message.get("error")))
    elif method == "notifications/initialized" and options.roots_at_start:
        ask("roots/list", {}, lambda answer: seen.update(start=answer))
    elif method == "notifications/roots/list_changed":
        seen["roots_changed"] += 1
    elif request is None:
        pass
    elif method == "server/discover" and options.modern:
        send({"id": request, "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "logging": {}},
            "ttlMs": 0, "cacheScope": "private", "_meta": {META + "serverInfo": {"name": "asking", "version": "1"}},
        }})
    elif method == "initialize" and not options.modern:
        seen["capabilities"] = params["capabilities"]
        send({"id": request, "result": {
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}, "logging": {}},
            "serverInfo": {"name": "asking", "version": "1"},
        }})
    elif method == "tools/list":
        annotations = {"readOnlyHint": True}
        listed = [{"name": name, "inputSchema": {"type": "object"}, "annotations": annotations} for name in TOOLS]
        more = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if options.modern else {}
        send({"id": request, "result": {"tools": listed, **more}})
    elif method == "tools/call":
        if (result := call(request, params)) is not None:
            send({"id": request, "result": result})
    elif method == "logging/setLevel":
        seen["levels"].append(params["level"])
        send({"id": request, "result": {}})
    elif method == "subscriptions/listen":
        noted = {"_meta": {META + "subscriptionId": request}, "notifications": params["notifications"]}
        send({"method": "notifications/subscriptions/acknowledged", "params": noted})
    else:
        send({"id": request, "error": {"code": -32601, "message": f"no {method} here"}})


for line in sys.stdin:
    handle(json.loads(line))
