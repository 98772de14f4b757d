"""On what a training ran, and in what precision: what a part's receipt says."""

from dataclasses import replace

import pytest

from dipedl_bench.running import machines
from dipedl_bench.running.machines import SoFar, precision
from dipedl_bench.running.memo import Spent


def test_kinds_are_kept_only_while_there_is_a_checkpoint_to_go_on_from(tmp_path, monkeypatch):
    def on(kind):
        monkeypatch.setattr(machines, "machine", lambda: kind)
        found = SoFar(tmp_path / "checkpoint")
        return found.resumed, found.machines

    assert on("first") == (False, ["first"])
    assert on("second") == (False, ["second"])  # the first left nothing behind
    (tmp_path / "checkpoint.0").write_bytes(b"")
    assert on("third") == (True, ["second", "third"])
    assert on("third") == (True, ["second", "third"])


def test_what_earlier_processes_took_is_counted_up_to_their_last_epoch(tmp_path, monkeypatch):
    now = Spent(100.0, 10.0)
    monkeypatch.setattr(Spent, "until_now", lambda: replace(now))
    first = SoFar(tmp_path / "checkpoint")
    assert first.earlier == Spent()
    (tmp_path / "checkpoint.0").write_bytes(b"")
    now = Spent(160.0, 100.0)
    first.keep()
    now = Spent(1000.0, 500.0)  # killed before its next epoch
    second = SoFar(tmp_path / "checkpoint")
    assert second.resumed and second.earlier == Spent(60.0, 90.0)
    now = Spent(1010.0, 520.0)
    second.keep()
    assert SoFar(tmp_path / "checkpoint").earlier == Spent(70.0, 110.0)
    (tmp_path / "so-far.json").write_text("{")  # damaged: nothing is known of earlier processes
    assert SoFar(tmp_path / "checkpoint").resumed
    assert SoFar(tmp_path / "checkpoint").earlier == Spent()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"training": {"settings": {"amp": True}}}, "bfloat16"), ({"x": {"amp": False}}, "float32")],
)
def test_precision_is_that_of_the_part_itself(arguments, said):
    below = {"classifier": {"arguments": {"training": {"settings": {"amp": True}}}}}
    assert precision({"arguments": arguments, "below": below}) == said
    assert precision({"arguments": {}, "below": below}) is None
