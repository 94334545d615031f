#!/usr/bin/env python3
"""A model for agents under test: each request gets the next answer of a script.

    model.py PORT_FILE SCRIPT

SCRIPT is a JSON list of turns. A turn is a text, or a call: {"tool": NAME, "input": {...}}, for Codex and Copilot also
{"tool": NAME, "text": "..."} for a tool that takes plain text, and "namespace" for a tool in one. After the last turn, the model says that it is done. Requests of
Anthropic's Messages API, of OpenAI's Responses and Chat Completions APIs and of Gemini's API are understood, on a free port of loopback, which is written to PORT_FILE.
The requests are written to `requests` beside SCRIPT.

A request whose prompt has `SCRIPT:` and a JSON list gets its answers from that list: a sub-agent, whose prompt the model writes.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

turns: list = []
requests_file = Path()
lock = threading.Lock()


MARK = "SCRIPT:"
turns_of_prompts: dict[str, list] = {}
# For the ids of calls.
numbers = itertools.count(1)


def next_turn(request: dict):
    prompt = prompt_of(request)
    own = prompt.partition(MARK)[2]
    with lock:
        script = turns_of_prompts.setdefault(own, json.JSONDecoder().raw_decode(own)[0]) if own else turns
        return script.pop(0) if script else "done"


def prompt_of(request: dict) -> str:
    """What was said before the first answer of the model."""
    texts = []
    for item in request.get("messages") or request.get("input") or request.get("contents") or []:
        # A sub-agent of Codex has its prompt from another agent.
        role = "user" if item.get("type") == "agent_message" else item.get("role")
        if role in (None, "assistant", "model"):
            break
        content = item.get("content", item.get("parts", ""))
        parts = [{"text": content}] if isinstance(content, str) else content
        texts += [part.get("text", part.get("encrypted_content", "")) for part in parts if role == "user"]
    return "\n".join(texts)


def responses_events(turn) -> list[dict]:
    """The events of one answer of the Responses API."""
    if isinstance(turn, str):
        item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": turn}]}
    elif "text" in turn:
        item = {"type": "custom_tool_call", "id": "ct_1", "call_id": f"call_{next(numbers)}", "name": turn["tool"], "input": turn["text"]}
    else:
        arguments = json.dumps(turn["input"])
        item = {"type": "function_call", "id": "fc_1", "call_id": f"call_{next(numbers)}", "name": turn["tool"], "arguments": arguments}
        if "namespace" in turn:
            item["namespace"] = turn["namespace"]
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
    response = {"id": "resp_1", "object": "response", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    ]


def chat_chunks(turn) -> list[dict]:
    """The chunks of one answer of the Chat Completions API."""
    if isinstance(turn, str):
        delta, reason = {"role": "assistant", "content": turn}, "stop"
    elif "text" in turn:
        call = {"index": 0, "id": f"call_{next(numbers)}", "type": "custom", "custom": {"name": turn["tool"], "input": turn["text"]}}
        delta, reason = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
    else:
        function = {"name": turn["tool"], "arguments": json.dumps(turn["input"])}
        call = {"index": 0, "id": f"call_{next(numbers)}", "type": "function", "function": function}
        delta, reason = {"role": "assistant", "tool_calls": [call]}, "tool_calls"
    chunk = {"id": "chat_1", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    choices = [[{"index": 0, "delta": delta}], [{"index": 0, "delta": {}, "finish_reason": reason}]]
    return [chunk | {"choices": choice} for choice in choices]


def gemini_answer(turn) -> dict:
    part = {"text": turn} if isinstance(turn, str) else {"functionCall": {"name": turn["tool"], "args": turn["input"]}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


def messages_events(turn) -> list[dict]:
    """The events of one answer of the Messages API."""
    if isinstance(turn, str):
        block, reason = {"type": "text", "text": ""}, "end_turn"
        delta = {"type": "text_delta", "text": turn}
    else:
        block, reason = {"type": "tool_use", "id": f"toolu_{next(numbers)}", "name": turn["tool"], "input": {}}, "tool_use"
        delta = {"type": "input_json_delta", "partial_json": json.dumps(turn["input"])}
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [], "usage": usage}
    return [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


class ModelHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, kind: str, body: str) -> None:
        data = body.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send("application/json", json.dumps({"models": [], "data": [], "object": "list"}))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = json.loads(body or b"{}")
        with lock, open(requests_file, "ab") as file:
            file.write(body + b"\n")
        if self.path.split("?")[0].endswith("/responses"):
            events = responses_events(next_turn(request))
            self.send("text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events))
        elif self.path.split("?")[0].endswith("/messages"):
            # Without tools it is a side question, such as for a title.
            events = messages_events(next_turn(request) if request.get("tools") else "{}")
            self.send("text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events))
        elif self.path.split("?")[0].endswith("/count_tokens"):
            self.send("application/json", json.dumps({"input_tokens": 1}))
        elif self.path.endswith("/chat/completions"):
            # Without tools it is a side question, such as for a title.
            chunks = chat_chunks(next_turn(request) if request.get("tools") else "a title")
            self.send("text/event-stream", "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n")
        elif ":countTokens" in self.path:
            self.send("application/json", json.dumps({"totalTokens": 1}))
        elif not request.get("tools"):
            # A side question of the agent, such as which model to use.
            self.answer_gemini(json.dumps({"model_choice": "flash", "reasoning": "scripted", "complexity_score": 1}))
        else:
            self.answer_gemini(next_turn(request))

    def answer_gemini(self, turn):
        answer = json.dumps(gemini_answer(turn))
        if ":streamGenerateContent" in self.path:
            self.send("text/event-stream", f"data: {answer}\n\n")
        else:
            self.send("application/json", answer)


def main() -> None:
    global requests_file
    port_file, script = sys.argv[1:]
    requests_file = Path(script).with_name("requests")
    turns.extend(json.loads(Path(script).read_text()))
    server = ThreadingHTTPServer(("127.0.0.1", 0), ModelHandler)
    Path(port_file).write_text(str(server.server_address[1]))
    server.serve_forever()


if __name__ == "__main__":
    main()
