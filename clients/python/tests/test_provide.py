"""Python functions as tools of the daemon, called by another client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import pytest
import toold
from conftest import PATIENCE, DaemonFolders
from toold import AsyncClient, Client, Invocation, Output


@pytest.fixture
def provider(daemon: DaemonFolders) -> Iterator[Client]:
    with Client(start=False, name="provider") as provider:
        provider.open_session(daemon.work)
        yield provider


@pytest.fixture
def caller(daemon: DaemonFolders) -> Iterator[Client]:
    """Works in the same folder, and may use what is provided."""
    with Client(start=False, name="caller", on_permission=lambda ask: ask.allow()) as caller:
        caller.open_session(daemon.work)
        yield caller


def test_a_function_is_a_tool(provider: Client, caller: Client) -> None:
    @provider.provide
    def shout(text: Annotated[str, "What to shout"], times: int = 1) -> str:
        """Says it louder."""
        return " ".join([text.upper()] * times)

    tool = caller.schema("shout")
    assert (tool.description, tool.source.kind, tool.source.name) == ("Says it louder.", "frontend", "provider")
    assert tool.input_schema["properties"]["text"] == {"type": "string", "description": "What to shout"}
    assert caller.execute("shout", {"text": "hey", "times": 2}).text == "HEY HEY"
    assert shout("still a function") == "STILL A FUNCTION"
    with pytest.raises(toold.InvalidArguments):
        caller.execute("shout", {"text": True})
    provider.withdraw("shout")
    with pytest.raises(toold.UnknownTool):
        caller.execute("shout", {"text": "hey"})


def test_results_have_all_that_a_tool_can_give(provider: Client, caller: Client) -> None:
    @provider.provide(name="facts", description="Facts", label="Some facts", parallelizable=True)
    def _facts() -> dict[str, Any]:
        return {"answer": 42}

    @provider.provide
    def refuse() -> Output:
        """Refuses"""
        return Output("not today", is_error=True, metadata={"why": "rain"})

    @provider.provide
    def crash() -> None:
        """Crashes"""
        raise LookupError("no such city")

    tool = caller.schema("facts")
    assert (tool.label, tool.parallelizable) == ("Some facts", True)
    facts = caller.execute("facts")
    assert (facts.text, facts.structured) == ('{"answer": 42}', {"answer": 42})
    refused = caller.execute("refuse")
    assert (refused.text, refused.is_error, refused.metadata["why"]) == ("not today", True, "rain")
    crashed = caller.execute("crash")
    assert crashed.is_error and "LookupError: no such city" in crashed.text


def test_a_provided_function_tells_how_far_it_is(provider: Client, caller: Client, daemon: DaemonFolders) -> None:
    @provider.provide
    def work(call: Invocation) -> str:
        """Works"""
        call.message("began")
        for n in range(3):
            call.update(n + 1, 3)
        call.output("half of it\n")
        return f"{call.cwd} {call.call_id}"

    call = caller.call("work")
    reported = [(progress.kind, progress.text or progress.progress) for progress in call]
    # Without the daemon's own message about the prompt.
    assert [each for each in reported if each != ("message", "waiting for permission")] == [
        ("message", "began"),
        ("update", 1),
        ("update", 2),
        ("update", 3),
        ("output", "half of it\n"),
    ]
    assert call.result().text == f"{daemon.work} {call.id}"


def test_a_provided_function_learns_that_its_call_is_cancelled(provider: Client, caller: Client) -> None:
    seen = threading.Event()

    @provider.provide
    def wait(call: Invocation) -> None:
        """Waits"""
        call.message("waiting")
        if call.cancelled.wait(PATIENCE):
            seen.set()

    with caller.call("wait") as call:
        next(progress for progress in call if progress.text == "waiting")
        assert call.cancel()
    assert seen.wait(PATIENCE)


def test_a_provided_function_may_use_the_client(provider: Client, caller: Client) -> None:
    @provider.provide
    def relay(name: str) -> str:
        """Relays"""
        return provider.execute("greet", {"name": name}).text

    assert caller.execute("relay", {"name": "you"}).text == "hello you"


def test_a_name_that_is_taken_is_refused(provider: Client) -> None:
    with pytest.raises(ValueError, match="provides a tool named mine already"):
        for _ in range(2):
            provider.provide(name="mine", description="Mine")(lambda: None)
    with pytest.raises(toold.RpcError):
        provider.provide(name="Bad Name", description="Bad")(lambda: None)
    assert "mine" in [tool.name for tool in provider.tools()]


def test_tools_go_with_their_provider_and_come_back(provider: Client, caller: Client, daemon: DaemonFolders) -> None:
    @provider.provide
    def here() -> str:
        """Is here"""
        return "here"

    assert caller.execute("here").text == "here"
    daemon.stop()
    daemon.start()
    with caller.events("tools.changed") as events:
        # The provider comes back by itself, before or after this subscription.
        while "here" not in [tool.name for tool in caller.tools()]:
            events.next(PATIENCE)
    assert caller.execute("here").text == "here"
    with caller.events("tools.changed") as events:
        provider.close()
        while "here" in [tool.name for tool in caller.tools()]:
            events.next(PATIENCE)


def test_coroutines_are_provided_before_and_after_connecting(caller: Client, daemon: DaemonFolders) -> None:
    async def scene() -> None:
        provider = AsyncClient(start=False, name="provider")

        @provider.provide
        async def early(text: str) -> str:
            """Early"""
            return f"early {text}"

        async def late(call: Invocation) -> None:
            """Late"""
            call.message("waiting")
            await asyncio.Event().wait()

        async with provider:
            await provider.open_session(daemon.work)
            with pytest.raises(RuntimeError, match="lend"):
                provider.provide(late)
            await provider.lend(late)
            first = await asyncio.to_thread(caller.execute, "early", {"text": "bird"})
            assert first.text == "early bird"
            call = await asyncio.to_thread(caller.call, "late")
            await asyncio.to_thread(lambda: next(reported for reported in call if reported.text == "waiting"))
            assert await asyncio.to_thread(call.cancel)

    asyncio.run(scene())
