"""A stand-in for Claude Code: starts `toolctl mcp` in the folder that it works in, and runs a shell of its own.

Reads requests as lines of JSON, and answers each with one line.
"""

import json
import os
import queue
import subprocess
import sys
import threading


class Bridge:
    def __init__(self, toolctl):
        self.number = 0
        self.answers = queue.Queue()
        self.heard = queue.Queue()
        self.process = subprocess.Popen(
            [toolctl, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        threading.Thread(target=self.read, daemon=True).start()
        self.request(
            "initialize",
            {
                "protocolVersion": "2025-11-25",
                "capabilities": {"roots": {}},
                "clientInfo": {"name": "claude-code", "version": "2.0.0"},
            },
        )
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message:
                self.answers.put(message)
            elif "id" not in message:
                self.heard.put(message["method"])
            elif message["method"] == "roots/list":
                roots = [{"uri": "file://" + os.getcwd()}]
                self.send({"id": message["id"], "result": {"roots": roots}})
            else:
                self.send({"id": message["id"], "error": {"code": -32601, "message": "not supported"}})
        self.answers.put(None)
        self.heard.put(None)

    def request(self, method, params):
        self.number += 1
        try:
            self.send({"id": self.number, "method": method, "params": params})
        except BrokenPipeError:
            return {"gone": True}
        while True:
            answer = self.answers.get(timeout=60)
            if answer is None:
                return {"gone": True}
            if answer["id"] == self.number:
                return answer

    def tools_until(self, text):
        """Lists the tools again each time that the daemon says they changed, until the list has this text."""
        while True:
            listed = json.dumps(self.request("tools/list", {}))
            if text in listed:
                return {"listed": True}
            while self.heard.get(timeout=60) != "notifications/tools/list_changed":
                pass

    def stop(self):
        # It may have ended with the daemon already.
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.wait(timeout=60)


def run(line):
    done = subprocess.run(
        ["bash", "-c", line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return {"status": done.returncode, "output": done.stdout}


toolctl = sys.argv[1]
bridge = Bridge(toolctl)
for line in sys.stdin:
    request = json.loads(line)
    if "call" in request:
        answer = bridge.request("tools/call", request["call"])
    elif "tools_until" in request:
        answer = bridge.tools_until(request["tools_until"])
    elif "shell" in request:
        answer = run(request["shell"])
    else:
        bridge.stop()
        bridge = Bridge(toolctl)
        answer = {}
    print(json.dumps(answer), flush=True)
bridge.stop()
