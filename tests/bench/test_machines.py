"""On what a training ran, and in what precision: what a part's receipt says."""

import pytest

from dipedl.bench.running import machines
from dipedl.bench.running.machines import precision, trained_on


def test_kinds_are_kept_only_while_there_is_a_checkpoint_to_go_on_from(tmp_path, monkeypatch):
    monkeypatch.setattr(machines, "machine", lambda: "first")
    assert trained_on(tmp_path) == (False, ["first"])
    monkeypatch.setattr(machines, "machine", lambda: "second")
    assert trained_on(tmp_path) == (False, ["second"])  # the first left nothing behind
    (tmp_path / "checkpoint").write_bytes(b"")
    monkeypatch.setattr(machines, "machine", lambda: "third")
    assert trained_on(tmp_path) == (True, ["second", "third"])
    assert trained_on(tmp_path) == (True, ["second", "third"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({"training": {"settings": {"amp": True}}}, "bfloat16"), ({"x": {"amp": False}}, "float32")],
)
def test_precision_is_that_of_the_part_itself(arguments, said):
    below = {"classifier": {"arguments": {"training": {"settings": {"amp": True}}}}}
    assert precision({"arguments": arguments, "below": below}) == said
    assert precision({"arguments": {}, "below": below}) is None
