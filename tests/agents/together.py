"""Two agents at once, with one memory of what a person allowed."""

from __future__ import annotations

import subprocess
from pathlib import Path

from alone import asks_toold
from place import Person, Place, until
from programs import Agent

COMMAND = "./release.sh"
SCRIPT = "#!/bin/sh\necho released >> releases.txt\n"


class Transcript:
    """Runs commands as a person does at a shell, and prints them with their output."""

    def __init__(self, place: Place):
        self.place = place

    def print(self, text: str) -> None:
        for long, short in ((str(self.place.project), "~/project"), (str(self.place.home), "~")):
            text = text.replace(long, short)
        print(text.rstrip("\n"))

    def run(self, *arguments: str) -> None:
        self.print(f"$ toolctl {' '.join(arguments)}")
        if output := self.place.ctl(*arguments).strip("\n"):
            self.print(output)


def one_grant(first: Agent, second: Agent, bin_dir: Path) -> None:
    """The same command at the same time is one ask. Its answer, for the project, then also serves toold's own bash."""
    with Place(bin_dir, asks_toold(first, second)) as place:
        # The grant is for the innermost repository.
        subprocess.run(["git", "init", "-q"], env=place.env, cwd=place.project, check=True, timeout=60)
        script, releases = place.project / COMMAND, place.project / "releases.txt"
        script.write_text(SCRIPT)
        script.chmod(0o755)
        for agent in (first, second):
            place.ctl("agents", "install", agent.name, "--hooks", "--yes")
        transcript = Transcript(place)
        with Person(place) as person:
            turns = {agent: [agent.shell(COMMAND), "done"] for agent in (first, second)}
            with first.start(place, turns[first]) as one, second.start(place, turns[second]) as two:
                for agent in (first, second):
                    transcript.print(f"$ {agent.name} ... &    # its model runs {COMMAND}")
                ask = person.asked()
                until("both agents wait", lambda: len(person.pending()[0]["call_ids"]) == 2)
                assert not releases.exists()
                transcript.run("permissions", "pending")
                transcript.run("permissions", "allow", ask["request_id"], "--scope", "project")
                said = one.wait() + two.wait()
            assert releases.read_text() == "released\n" * 2, said
            # A new conversation of each, and a tool of toold.
            for agent in (first, second):
                transcript.print(f"$ {agent.name} ...      # again, and nobody is asked")
                said = agent.run(place, turns[agent])
            transcript.run("call", "bash", f"command={COMMAND}")
            assert releases.read_text() == "released\n" * 5, said
            # The ask comes again when another agent waits for its answer, too.
            assert {other["request_id"] for other in person.other_asks()} <= {ask["request_id"]}
        transcript.run("audit", "--decisions")
        transcript.run("permissions", "list")
