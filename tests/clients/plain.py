#!/usr/bin/env python3
"""A client that is nothing but the standard library: the protocol needs no package to be spoken.

Usage: plain.py SOCKET CWD, against a daemon that has the tools `greet` and `wait_for_ever`.
Prints what it saw as one line of JSON.
"""

import json
import os
import socket
import sys

socket_path, cwd = sys.argv[1:]
stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
stream.settimeout(30)
stream.connect(socket_path)
lines = stream.makefile("r", encoding="utf-8")
seen = []  # messages that were read and not yet taken


def take(wanted):
    """The first message that is wanted; others wait their turn."""
    while True:
        for place, message in enumerate(seen):
            if wanted(message):
                return seen.pop(place)
        seen.append(json.loads(next(lines)))


def send(request_id, method, **params):
    message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    stream.sendall(json.dumps(message).encode() + b"\n")


def answer(request_id):
    return take(lambda message: message.get("id") == request_id and "method" not in message)


def call(request_id, method, **params):
    send(request_id, method, **params)
    return answer(request_id)["result"]


session = call("open", "session.open", cwd=cwd, client={"name": "plain"}, protocol=2)
tools = call("list", "tools.list")["tools"]
subscription = call("subscribe", "events.subscribe", kinds=["call.started", "call.finished"])

greeted = call("greet", "tools.execute", name="greet", arguments={"name": "you", "times": 2}, progress=True)
progress = [message["params"] for message in seen if message.get("method") == "tools.progress"]

send("wait", "tools.execute", name="wait_for_ever", call_id="mine", progress=True)
take(lambda message: message.get("params", {}).get("call_id") == "mine")  # it runs
cancelled = call("cancel", "tools.cancel", call_id="mine")
ended = answer("wait")

events = [take(lambda message: message.get("method") == "events.event")["params"] for _ in range(4)]
summary = {
    "cwd_is_ours": session["cwd"] == os.path.realpath(cwd),
    "protocol": session["server"]["protocol"],
    "tools": [tool["name"] for tool in tools],
    "text": greeted["content"][0]["text"],
    "progress": [[reported["seq"], reported["kind"]] for reported in progress],
    "cancelled": cancelled["cancelled"],
    "ended_with": ended["error"]["code"],
    "events": [[e["result"]["kind"], e["result"]["tool"], e["result"].get("outcome")] for e in events],
    "events_are_ours": all(event["subscription"] == subscription for event in events),
    "unsubscribed": call("unsubscribe", "events.unsubscribe", subscription=subscription),
}
print(json.dumps(summary))
