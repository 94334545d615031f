"""Permission asks and questions, answered by callbacks."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from conftest import PATIENCE, DaemonFolders
from toold import Answer, Ask, AsyncClient, Client, Question, Reply


def test_an_ask_is_allowed_by_a_callback(daemon: DaemonFolders) -> None:
    asks: list[Ask] = []

    def allow(ask: Ask) -> Reply:
        asks.append(ask)
        return ask.allow()

    with Client(start=False, on_permission=allow) as client:
        client.open_session(daemon.work)
        result = client.execute("bash", {"command": "touch made && echo done"})
        assert not result.is_error and "done" in result.text
        assert (daemon.work / "made").exists()
        ask = asks[0]
        assert (ask.category, ask.target, ask.tool) == ("shell", "touch made", "bash")
        assert ask.command == "touch made && echo done" and ask.cwd == str(daemon.work)
        assert ask.source.kind == "builtin" and ask.suggestions
        # Once is once.
        again = len(asks)
        client.execute("bash", {"command": "touch made && echo done"})
        assert len(asks) > again


def test_a_scope_is_remembered(daemon: DaemonFolders) -> None:
    asks: list[Ask] = []

    def allow(ask: Ask) -> Reply:
        asks.append(ask)
        return ask.allow("session")

    with Client(start=False, on_permission=allow) as client:
        client.open_session(daemon.work)
        for _ in range(3):
            assert not client.execute("bash", {"command": "touch made"}).is_error
        assert [ask.target for ask in asks] == ["touch made"]


def test_a_denial_is_a_result_with_the_message(daemon: DaemonFolders) -> None:
    with Client(start=False, on_permission=lambda ask: ask.deny("use the other folder")) as client:
        client.open_session(daemon.work)
        result = client.execute("bash", {"command": "touch made"})
        assert result.is_error and "use the other folder" in result.text
        assert result.metadata["permission"]["target"] == "touch made"
        assert not (daemon.work / "made").exists()


@pytest.mark.parametrize("answer", ["allow", True, RuntimeError("the screen is gone")])
def test_what_is_no_reply_denies(daemon: DaemonFolders, answer: object, caplog: pytest.LogCaptureFixture) -> None:
    def broken(ask: Ask) -> Reply | None:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    with Client(start=False, on_permission=broken) as client:
        client.open_session(daemon.work)
        assert client.execute("bash", {"command": "touch made"}).is_error
        assert not (daemon.work / "made").exists()
    assert "callback for permissions failed" in caplog.text


def test_the_first_answer_ends_the_other_prompt(daemon: DaemonFolders) -> None:
    shown = threading.Event()
    ended = threading.Event()

    def slow(ask: Ask) -> None:
        shown.set()
        assert ask.over.wait(PATIENCE)
        ended.set()

    def quick(ask: Ask) -> Reply:
        assert shown.wait(PATIENCE)
        return ask.allow()

    with Client(start=False, name="slow", on_permission=slow), Client(start=False, on_permission=quick) as client:
        client.open_session(daemon.work)
        assert not client.execute("bash", {"command": "touch made"}).is_error
        assert ended.wait(PATIENCE)


def test_a_coroutine_answers_and_is_cancelled_with_its_call(daemon: DaemonFolders) -> None:
    async def scene() -> None:
        asked, ended = asyncio.Event(), asyncio.Event()

        async def never(ask: Ask) -> None:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with AsyncClient(start=False, on_permission=never) as client:
            await client.open_session(daemon.work)
            async with client.call("bash", {"command": "touch made"}) as call:
                await asyncio.wait_for(asked.wait(), PATIENCE)
                assert await call.cancel()
            await asyncio.wait_for(ended.wait(), PATIENCE)

        async def allow(ask: Ask) -> Reply:
            return ask.allow()

        async with AsyncClient(start=False, on_permission=allow) as client:
            await client.open_session(daemon.work)
            assert not (await client.execute("bash", {"command": "touch made"})).is_error

    asyncio.run(scene())


def test_an_ask_that_waits_its_turn_says_who_waits_for_it_then(daemon: DaemonFolders) -> None:
    asked: list[Ask] = []
    first = threading.Event()
    go = threading.Event()

    def allow(ask: Ask) -> Reply:
        asked.append(ask)
        first.set()
        assert go.wait(PATIENCE)
        return ask.allow()

    with Client(start=False, on_permission=allow) as client, Client(start=False) as other:
        client.open_session(daemon.work)
        calls = [client.call("bash", {"command": "touch one"})]
        assert first.wait(PATIENCE)
        calls += [client.call("bash", {"command": "touch two"}) for _ in range(2)]
        deadline = time.monotonic() + PATIENCE
        while [len(ask["call_ids"]) for ask in other.request("permissions.pending")["asks"]] != [1, 2]:
            assert time.monotonic() < deadline
        # Messages arrive in order: this answer comes after all that were sent before it.
        client.request("daemon.ping")
        go.set()
        assert not any(call.result().is_error for call in calls)
    assert [(ask.target, len(ask.call_ids)) for ask in asked] == [("touch one", 1), ("touch two", 2)]


def test_prompts_come_back_with_the_connection(daemon: DaemonFolders) -> None:
    with Client(start=False, on_permission=lambda ask: ask.allow()) as client:
        client.open_session(daemon.work)
        daemon.stop()
        daemon.start()
        assert not client.execute("bash", {"command": "touch made"}).is_error


def test_questions_are_answered_by_a_callback(daemon: DaemonFolders) -> None:
    plugin = """
    hygge.register_tool{
      name = "survey", description = "Asks", input_schema = {type = "object"},
      execute = function(ctx)
        local answer = ctx.question{
          question = "Tea or coffee?", multiple = false, allow_other = true,
          options = {{label = "Tea", description = "Green"}, {label = "Coffee"}},
        }
        return hygge.json.encode(answer)
      end,
    }
    """
    questions: list[Question] = []
    answers = iter(["choose", "say", "cancel"])

    def answer(question: Question) -> Answer:
        questions.append(question)
        match next(answers):
            case "choose":
                return question.choose(question.options[1])
            case "say":
                return question.say("water")
            case _:
                return question.cancel()

    daemon.stop()
    (daemon.root / "config/toold/plugins/survey.lua").write_text(plugin)
    daemon.start()
    with Client(start=False, on_question=answer) as client:
        client.open_session(daemon.work)
        chosen = client.execute("survey")
        assert "Coffee" in chosen.text and not chosen.is_error, chosen
        assert "water" in client.execute("survey").text
        cancelled = client.execute("survey")
        assert "Coffee" not in cancelled.text and "water" not in cancelled.text
    assert questions[0].question == "Tea or coffee?"
    assert [option.label for option in questions[0].options] == ["Tea", "Coffee"]
    assert (questions[0].allow_other, questions[0].multiple) == (True, False)
