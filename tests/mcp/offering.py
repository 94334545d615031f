"""An MCP server with resources, prompts and completion. One message a line on stdin and stdout.

    offering.py [--modern] [--hostile endless|twice|templates|mute|close|errors]
"""

import argparse
import json
import os
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--modern", action="store_true", help="the stateless life of 2026-07-28 alone")
parser.add_argument("--hostile", default="", help="how its lists misbehave")
options = parser.parse_args()

META = "io.modelcontextprotocol/"
UI = {"ui": {"csp": {"connectDomains": ["https://a.example"]}, "prefersBorder": True}}
added = []
subscribed = set()
listening = {}
answers = {}
reads = 0
next_id = 1000


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def tool(name, **more):
    return {"name": name, "description": "", "inputSchema": {"type": "object"}, **more}


TOOLS = [
    tool("echo"), tool("touch"), tool("watched"), tool("add"), tool("link"), tool("where"),
    tool("show", _meta={"ui": {"resourceUri": "ui://panel", "visibility": ["model", "app"]}, "anthropic/alwaysLoad": True}),
]
LINK = {"type": "resource_link", "uri": "doc://unlisted/1", "name": "Report", "description": "All of it", "mimeType": "text/plain"}


def call(name, given):
    if name == "echo":
        return text(str(given.get("text", "")))
    if name == "where":
        return text(str(os.getpid()))
    if name == "touch":
        uri = given["uri"]
        if uri in subscribed:
            send({"method": "notifications/resources/updated", "params": {"uri": uri}})
        for subscription, wanted in listening.items():
            if uri in (wanted.get("resourceSubscriptions") or []):
                meta = {META + "subscriptionId": subscription}
                send({"method": "notifications/resources/updated", "params": {"uri": uri, "_meta": meta}})
        return text("touched")
    if name == "watched":
        wanted = {uri for filter in listening.values() for uri in filter.get("resourceSubscriptions") or []}
        return text(json.dumps(sorted(subscribed | wanted)))
    if name == "add":
        added.append({"uri": given["uri"], "name": "added"})
        changed("resources", "resourcesListChanged")
        return text("added")
    if name == "link":
        return {"content": [LINK]}
    if name == "show":
        return text("shown", structuredContent={"n": 1}, _meta={"panel": "a"})
    raise Refused(-32602, f"no {name}")


def changed(of, member):
    if not options.modern:
        send({"method": f"notifications/{of}/list_changed"})
    for subscription, wanted in listening.items():
        if wanted.get(member):
            send({"method": f"notifications/{of}/list_changed", "params": {"_meta": {META + "subscriptionId": subscription}}})


def resources():
    listed = [
        {"uri": "note://all", "name": "all", "title": "All notes", "description": "Each note", "mimeType": "text/plain", "size": 7},
        {"uri": "bin://data", "name": "data", "mimeType": "application/octet-stream", "annotations": {"priority": 0.5}},
        {"uri": "ui://panel", "name": "panel", "mimeType": "text/html;profile=mcp-app", "_meta": UI},
    ] + added
    if options.hostile == "twice":
        listed += [{"uri": "note://all", "name": "again"}, {"uri": "skill://greeting", "name": "taken"}, 7, {"uri": "a\u202eb"}]
    return listed


def read(request, params):
    global reads, next_id
    uri = params["uri"]
    if uri == "note://hang":
        return None
    if uri == "note://die":
        print("dying of a read", file=sys.stderr, flush=True)
        os._exit(3)
    if uri == "note://huge":
        return {"contents": [{"uri": uri, "text": "x" * (10 << 20)}]}
    if uri == "note://ask":
        form = {"mode": "form", "message": "Which color?", "requestedSchema": {"type": "object", "properties": {"color": {"type": "string"}}}}
        if not options.modern:
            next_id += 1
            answers[next_id] = request
            send({"id": next_id, "method": "elicitation/create", "params": form})
            return None
        if "inputResponses" not in params:
            return {"resultType": "input_required", "inputRequests": {"color": {"method": "elicitation/create", "params": form}}, "requestState": "s"}
        return contents(uri, json.dumps(params["inputResponses"]))
    if uri == "bin://data":
        return {"contents": [{"uri": uri, "mimeType": "application/octet-stream", "blob": "AAEC"}]}
    if uri == "ui://panel":
        return {"contents": [{"uri": uri, "mimeType": "text/html;profile=mcp-app", "text": "<b>x</b>", "_meta": UI}]}
    if uri.startswith(("note://", "doc://", "db://")) and not uri.endswith("missing"):
        reads += 1
        return contents(uri, f"{uri} as read")
    raise Refused(-32602 if options.modern else -32002, "no such resource")


def contents(uri, words):
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": words}]}


def complete(params):
    of, argument = params["ref"], params["argument"]
    given = (params.get("context") or {}).get("arguments") or {}
    begun = argument["value"]
    if of["type"] == "ref/prompt":
        values = [value for value in ["formal", "friendly", "short"] if value.startswith(begun)]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}
    return {"completion": {"values": [f"{begun}{n}" for n in (1, 2)] + sorted(given)}}


def result(method, request, params):
    if method == "server/discover" and options.modern:
        return {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
    if method == "initialize" and not options.modern:
        return {"protocolVersion": "2025-11-25", "capabilities": CAPABILITIES, "serverInfo": {"name": "offering", "version": "1"}}
    if method == "tools/list":
        return {"tools": TOOLS + [tool("resource/note://all"), tool("prompt/greet")]}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
    if method == "resources/list":
        if options.hostile == "mute":
            return None
        if options.hostile == "close":
            os._exit(5)
        if options.hostile == "errors":
            raise Refused(-32603, "out of order")
        if options.hostile == "endless":
            at = int(params.get("cursor") or 0)
            uris = [{"uri": f"end://{at}/{n}", "name": "n", "description": "d" * 10_000_000 if at == 0 and n == 0 else ""} for n in range(20)]
            return {"resources": uris, "nextCursor": str(at + 1)}
        return {"resources": resources()}
    if method == "resources/templates/list":
        templates = [
            {"uriTemplate": "note://{id}", "name": "note", "description": "One note"},
            {"uriTemplate": "db://{table}{/row*}", "name": "row"},
        ]
        if options.hostile == "templates":
            templates += [{"uriTemplate": "x://{a", "name": "open"}, {"uriTemplate": "x://a", "name": "none"}, {"uriTemplate": "x://{|}", "name": "odd"}]
        return {"resourceTemplates": templates}
    if method == "prompts/list":
        arguments = [{"name": "name", "required": True}, {"name": "style", "description": "How"}]
        return {"prompts": [{"name": "greet", "title": "Greet", "description": "Greets", "arguments": arguments}]}
    if method == "prompts/get":
        given = params.get("arguments") or {}
        messages = [
            {"role": "user", "content": {"type": "text", "text": f"hello {given.get('name')}, {given.get('style')}"}},
            {"role": "assistant", "content": {"type": "resource", "resource": {"uri": "ui://panel", "text": "p", "_meta": UI}}},
        ]
        return {"description": "A greeting", "messages": messages}
    if method == "completion/complete":
        return complete(params)
    if method == "resources/read":
        return read(request, params)
    if method == "resources/subscribe" and not options.modern:
        subscribed.add(params["uri"])
        return {}
    if method == "resources/unsubscribe" and not options.modern:
        subscribed.discard(params["uri"])
        return {}
    raise Refused(-32601, f"no {method} here")


CAPABILITIES = {
    "tools": {"listChanged": True}, "prompts": {"listChanged": True}, "completions": {},
    "resources": {"subscribe": True, "listChanged": True},
}
CACHED = {"ttlMs": 0, "cacheScope": "private"}

for line in sys.stdin:
    message = json.loads(line)
    method, request, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method is None:
        if request in answers:
            send({"id": answers.pop(request), "result": contents("note://ask", json.dumps(message.get("result")))})
    elif method == "notifications/cancelled":
        listening.pop(params.get("requestId"), None)
    elif method == "subscriptions/listen" and options.modern:
        listening[request] = params["notifications"]
        meta = {META + "subscriptionId": request}
        send({"method": "notifications/subscriptions/acknowledged", "params": {"_meta": meta, "notifications": params["notifications"]}})
    elif request is not None:
        try:
            if options.modern and META + "protocolVersion" not in (params.get("_meta") or {}):
                raise Refused(-32602, "which protocol?")
            answer = result(method, request, params)
            if answer is not None and options.modern:
                answer = {"resultType": "complete", **answer}
                if method.endswith("/list") or method in ("resources/read", "server/discover"):
                    answer |= CACHED
            if answer is not None:
                send({"id": request, "result": answer})
        except Refused as refused:
            send({"id": request, "error": {"code": refused.code, "message": str(refused)}})
