"""An agent loop: a model that speaks the OpenAI chat API, and all the tools of the daemon.

The daemon lists the tools in the form of the API, runs the model's calls, and returns results in the form that goes
back to the model. The rest of an agent is here. A line on stdin answers the open permission request. If there is none,
it steers: the waiting calls are skipped, and the model reads the line.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
import urllib.request
from typing import Any, TextIO

from toold import Ask, Client, Progress, Reply

INSTRUCTIONS = "You work in the user's folder, with the tools you are given. Be brief."
Message = dict[str, Any]


class Agent:
    def __init__(self, url: str, model: str, most_rounds: int = 50) -> None:
        self.url = url.rstrip("/") + "/chat/completions"
        self.model = model
        self.most_rounds = most_rounds
        self.client = Client(name="agent-example", on_permission=self.permit)
        self.steering: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.answers: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.asking = threading.Event()
        self.names: dict[str, str] = {}

    def run(self, task: str) -> str:
        """Works until the model makes no more calls, and returns its last message."""
        messages: list[Message] = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": task},
        ]
        self.client.open_session(model=self.model)
        for _ in range(self.most_rounds):
            message = self.complete(messages)
            messages.append(message)
            calls = message.get("tool_calls") or []
            for call in calls:
                self.names[call["id"]] = call["function"]["name"]
                say(f"> {call['function']['name']} {call['function']['arguments']}")
            if calls:
                messages += self.client.execute_batch(calls, format="openai", on_progress=self.show)
            steered = self.steered()
            messages += steered
            if not calls and not steered:
                return str(message["content"])
        raise RuntimeError(f"the model did not finish within {self.most_rounds} rounds")

    def complete(self, messages: list[Message]) -> Message:
        """Asks the model. Lists the tools each time, since plugins and other clients may have added some."""
        body = {"model": self.model, "messages": messages, "tools": self.client.tools(format="openai")}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        if key := os.environ.get("OPENAI_API_KEY"):
            request.add_header("Authorization", f"Bearer {key}")
        with urllib.request.urlopen(request, timeout=600) as response:
            answer: Message = json.load(response)["choices"][0]["message"]
        return answer

    def show(self, progress: Progress) -> None:
        for line in (progress.text or progress.message or "").splitlines():
            say(f"  {self.names.get(progress.call_id, '?')}: {line}")

    def permit(self, ask: Ask) -> Reply | None:
        self.asking.set()
        reason = f" ({ask.reason})" if ask.reason else ""
        # The answer for a folder is remembered, unless it is for the session alone.
        yes = "yes, and remember it" if ask.is_for_workspace else "yes"
        say(f"? {ask.tool} wants {ask.category}: {ask.target}{reason} (y: {yes}, s: in this session, else no)")
        answer = None
        while answer is None and not ask.over.is_set():
            try:
                answer = self.answers.get(timeout=0.2)
            except queue.Empty:
                continue  # Another client may have answered.
        self.asking.clear()
        if answer is None:
            return None
        scope = {"y": "once", "s": "session"}.get(answer)
        return ask.deny("the user said no") if scope is None else ask.allow("session" if scope == "session" else "once")

    def listen(self, lines: TextIO) -> None:
        for line in lines:
            if self.asking.is_set():
                self.answers.put(line.strip())
            else:
                self.steering.put(line.strip())
                say(f"! {self.client.interrupt()} calls are skipped")

    def steered(self) -> list[Message]:
        return [{"role": "user", "content": self.steering.get()} for _ in range(self.steering.qsize())]


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Lets a model work with the tools of toold.")
    parser.add_argument("task")
    parser.add_argument("--url", default=os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"))
    parser.add_argument("--model", default="gpt-4.1-mini")
    options = parser.parse_args()
    agent = Agent(options.url, options.model)
    with agent.client:
        threading.Thread(target=agent.listen, args=[sys.stdin], daemon=True).start()
        say(agent.run(options.task))


if __name__ == "__main__":
    main()
