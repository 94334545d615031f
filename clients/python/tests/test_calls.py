"""Sessions, lists, calls, batches, events: the client that waits."""

from __future__ import annotations

import threading

import pytest
import toold
from conftest import PATIENCE, DaemonFolders
from toold import CallCancelled, Client, InvalidArguments, RequestTimeout, ToolResult, UnknownTool


def test_a_session_is_opened_resumed_and_closed(client: Client, daemon: DaemonFolders) -> None:
    assert client.session is not None
    assert (client.session.cwd, client.session.resumed) == (str(daemon.work), False)
    assert client.session.server["protocol"] == 2
    with Client() as other:
        again = other.open_session(session_id=client.session.session_id)
        assert (again.resumed, again.cwd) == (True, str(daemon.work))
        other.close_session()
        assert other.session is None
    with pytest.raises(toold.UnknownId):
        client.request("tools.list", {"session_id": "no_such_session"})


def test_tools_are_listed_and_shown(client: Client) -> None:
    tools = client.tools()
    names = [tool.name for tool in tools]
    assert names == sorted(names) and {"bash", "greet", "read"} <= set(names)
    greet = client.schema("greet")
    assert greet == next(tool for tool in tools if tool.name == "greet")
    assert (greet.source.kind, greet.parallelizable) == ("plugin", True)
    assert greet.input_schema["required"] == ["name"]
    assert [tool.name for tool in client.tools("greets somebody")] == ["greet"]
    assert [tool.name for tool in client.tools(names=["fail", "greet"])] == ["fail", "greet"]
    (function,) = client.tools(names=["greet"], format="openai")
    assert (function["type"], function["function"]["name"]) == ("function", "greet")
    short = [tool.name for tool in client.tools(mode="deferred")]
    assert {"read", "tools_call", "tools_search"} <= set(short) and "greet" not in short
    (found,) = client.search("greets somebody", limit=1, schemas=True)
    assert (found["name"], found["input_schema"]["required"]) == ("greet", ["name"])


def test_a_call_gives_its_progress_and_its_result(client: Client) -> None:
    call = client.call("greet", {"name": "you", "times": 2})
    seen = list(call)
    assert [(reported.seq, reported.kind) for reported in seen] == [(0, "update"), (1, "update"), (2, "output")]
    assert (seen[1].progress, seen[1].total, seen[1].message) == (2, 2, "greeting")
    assert (seen[2].stream, seen[2].text) == ("stdout", "written\n")
    result = call.result()
    assert (result.text, result.is_error, result.cached, result.call_id) == ("hello you", False, False, call.id)
    assert call.done() and call.cancel() is False


def test_execute_waits_and_shows_progress_in_this_thread(client: Client) -> None:
    threads = set()
    result = client.execute("greet", {"name": "me"}, on_progress=lambda _: threads.add(threading.current_thread()))
    assert result.text == "hello me"
    assert threads == {threading.current_thread()}


def test_bad_news_of_a_tool_is_a_result(client: Client) -> None:
    result = client.execute("fail")
    assert result.is_error and "out of luck" in result.text


def test_errors_have_types_codes_and_data(client: Client) -> None:
    with pytest.raises(InvalidArguments) as invalid:
        client.execute("greet", {"times": 0, "nmae": "x"})
    assert (invalid.value.code, invalid.value.kind, len(invalid.value.errors)) == (-32602, "invalid_args", 3)
    assert "/times" in [problem["path"] for problem in invalid.value.errors]
    with pytest.raises(UnknownTool) as unknown:
        client.execute("great")
    assert (unknown.value.code, unknown.value.suggestions[0]) == (-32001, "greet")
    with pytest.raises(toold.RpcError) as no_method:
        client.request("no.such_method")
    assert no_method.value.code == -32601


def test_a_call_can_be_cancelled(client: Client) -> None:
    call = client.call("wait_for_ever")
    assert next(iter(call)).text == "waiting"
    assert call.cancel() is True
    with pytest.raises(CallCancelled):
        call.result()
    # At once, before the daemon has heard of it.
    call = client.call("wait_for_ever")
    assert call.cancel() is True
    with pytest.raises(CallCancelled):
        call.result()


def test_a_block_that_ends_cancels_its_call(client: Client) -> None:
    with client.events("call.finished") as events:
        with client.call("wait_for_ever") as call:
            next(iter(call))
        finished = events.next(PATIENCE)
        assert (finished["call_id"], finished["outcome"]) == (call.id, "cancelled")


def test_a_time_limit_is_the_tools_and_patience_is_the_callers(client: Client) -> None:
    result = client.execute("wait_for_ever", timeout=0.05)
    assert result.is_error and result.metadata["timed_out"] is True
    with client.call("wait_for_ever") as call:
        with pytest.raises(RequestTimeout):
            call.result(timeout=0.01)
        assert not call.done()


def test_an_id_in_flight_is_refused_at_once(client: Client) -> None:
    with client.call("wait_for_ever", call_id="mine"), pytest.raises(ValueError, match="mine"):
        client.call("wait_for_ever", call_id="mine")


@pytest.mark.parametrize("strategy", ["auto", "sequential", "parallel", 2])
def test_a_batch_answers_in_order(client: Client, strategy: toold.Strategy) -> None:
    reported: list[str] = []
    results = client.execute_batch(
        [
            ("greet", {"name": "one"}),
            {"name": "greet", "arguments": {"name": "two"}, "call_id": "two"},
            ("greet", {}),
            ("fail", {}),
        ],
        strategy=strategy,
        on_progress=lambda progress: reported.append(progress.call_id),
    )
    first, second, third, fourth = results
    assert isinstance(first, ToolResult) and first.text == "hello one"
    assert isinstance(second, ToolResult) and (second.text, second.call_id) == ("hello two", "two")
    assert isinstance(third, InvalidArguments)
    assert isinstance(fourth, ToolResult) and fourth.is_error
    assert sorted(reported) == sorted([first.call_id] * 2 + ["two"] * 2)


def test_a_batch_in_a_providers_form_answers_in_that_form(client: Client) -> None:
    calls = [{"id": "call_1", "type": "function", "function": {"name": "greet", "arguments": '{"name": "model"}'}}]
    reported: list[str] = []
    results = client.execute_batch(calls, format="openai", on_progress=lambda each: reported.append(each.call_id))
    assert results == [{"role": "tool", "tool_call_id": "call_1", "content": "hello model"}]
    assert reported == ["call_1", "call_1"]


def test_an_interrupt_skips_what_waits(client: Client) -> None:
    first = client.call("wait_in_line")
    next(iter(first))
    with client.call("wait_in_line") as second:
        # The second waits for the first, whether or not its request has been read yet.
        skipped = 0
        while skipped == 0:
            skipped = client.interrupt()
        assert second.result().metadata["skipped"] is True
    first.cancel()


def test_events_come_in_order_and_end_with_their_block(client: Client) -> None:
    with client.events(["call.started", "call.finished"]) as events:
        client.execute("greet", {"name": "x"})
        started, finished = events.next(PATIENCE), events.next(PATIENCE)
        assert (started.kind, finished.kind) == ("call.started", "call.finished")
        assert (finished["tool"], finished["outcome"]) == ("greet", "ok")
        assert finished.seq > started.seq and finished.epoch == started.epoch
        with pytest.raises(RequestTimeout):
            events.next(timeout=0.01)
    assert list(events) == []
    with client.events("call.finished", since=started.seq, epoch=started.epoch) as replayed:
        assert replayed.next(PATIENCE) == finished


def test_a_message_that_is_too_long_is_not_sent(client: Client) -> None:
    with pytest.raises(toold.TooLarge):
        client.execute("greet", {"name": "x" * (17 << 20)})
    assert client.execute("greet", {"name": "x"}).text == "hello x"


def test_many_threads_share_a_client(client: Client) -> None:
    results: list[str] = []
    work = [
        threading.Thread(target=lambda n=n: results.append(client.execute("greet", {"name": str(n)}).text))
        for n in range(20)
    ]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join(PATIENCE)
    assert sorted(results) == sorted(f"hello {n}" for n in range(20))


def test_a_closed_client_says_so(client: Client) -> None:
    client.close()
    client.close()
    with pytest.raises(toold.Disconnected, match="closed"):
        client.tools()
