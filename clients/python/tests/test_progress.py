"""Progress that nobody takes is bounded, and what is lost is counted."""

from __future__ import annotations

import asyncio

from toold.calls import MAX_WAITING, ProgressQueue


def test_progress_that_nobody_takes_is_dropped_and_counted() -> None:
    async def scene() -> list[tuple[int, int]]:
        queue = ProgressQueue()
        half = MAX_WAITING // 2
        for seq in range(5):
            queue.put({"call_id": "c", "seq": seq, "kind": "message", "text": str(seq)}, half)
        first = await queue.take()
        # The daemon has lost one itself before this one.
        queue.put({"call_id": "c", "seq": 6, "kind": "message", "text": "6", "dropped": 1}, half)
        queue.end()
        taken = [first, await queue.take(), await queue.take()]
        assert await queue.take() is None and await queue.take() is None
        return [(progress.seq, progress.dropped) for progress in taken if progress is not None]

    assert asyncio.run(scene()) == [(0, 0), (1, 0), (6, 4)]
