"""The daemon's metrics, read by Prometheus' own parser."""

from __future__ import annotations

from conftest import TOOLD, DaemonFolders
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from toold import Client


def test_prometheus_reads_what_is_counted(folders: DaemonFolders) -> None:
    with Client(toold=TOOLD) as client:
        assert not client.call("greet", {"name": "somebody"}).result().is_error
        assert client.call("fail", {}).result().is_error
        text = client.request("daemon.metrics")["text"]
    # The library's parser says nothing of types.
    parsed = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
    families = {family.name: family for family in parsed}
    calls = {
        (sample.labels["tool"], sample.labels["outcome"]): sample.value
        for sample in families["toold_calls"].samples
    }
    assert calls == {("greet", "ok"): 1, ("fail", "error"): 1}
    took = families["toold_call_duration_seconds"]
    assert (took.type, took.unit) == ("histogram", "seconds")
    assert families["process_resident_memory_bytes"].samples[0].value > 1e6
    assert all(family.documentation for family in families.values())
