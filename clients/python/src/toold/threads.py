"""Plain functions of the caller, run in threads beside the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable
from typing import Any


async def in_thread(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Runs a function in a thread of its own, which does not keep the process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def run() -> None:
        result: Any = None
        failed: BaseException | None = None
        try:
            result = function(*arguments, **named)
        except StopIteration as error:
            # A future cannot hold it.
            failed = RuntimeError(f"{function!r} raised StopIteration: {error}")
        except BaseException as error:
            failed = error
        # The loop may be closed by now; then nobody waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="toold-callback", daemon=True).start()
    result = await future
    return await result if inspect.isawaitable(result) else result
