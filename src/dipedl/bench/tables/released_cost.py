"""What the released pipeline would cost, by its number of operations, beside our minutes.

The released code was not run. A training takes three times the operations of a forward pass for
every image and epoch, two for each multiplication. The rates are those of a machine that does
nothing else: 150 GFLOP/s is what matrix products reach on two CPU cores, and 100 TFLOP/s is taken
for half precision on an H200, on top of which one process augments images, at about 10 s an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .table import Line

__all__ = ["Released", "released", "time_to_result"]

_N = 40_000
_CPU_FLOPS = 150e9
_GPU_FLOPS = 100e12
#: Seconds in which one process turns, shifts and mirrors the images of an epoch.
_AUGMENT = 10.0


@dataclass(frozen=True)
class Released:
    """A training of the released code: its network's multiplications an image, epochs, members."""

    network: str
    multiplications: float
    epochs: int
    members: int = 1

    @property
    def flop(self) -> float:
        """Operations of one seed's training."""
        return 2 * 3 * self.multiplications * _N * self.epochs * self.members

    @property
    def cpu_hours(self) -> float:
        """Hours on two CPU cores."""
        return self.flop / _CPU_FLOPS / 3600

    @property
    def gpu_hours(self) -> float:
        """Hours on an H200."""
        augmenting = _AUGMENT * self.epochs * self.members
        return (self.flop / _GPU_FLOPS + augmenting) / 3600


_WRN = Released("WRN-28-10", 5.95e9, 100)
_CIFAR10 = {
    "EDL": _WRN,
    "R-EDL": Released("VGG-16", 0.313e9, 200),
    "Re-EDL": Released("VGG-16", 0.313e9, 200),
    "DAEDL": Released("VGG-16", 0.313e9, 100),
    "PostNet": Released("ConvLin", 0.0377e9, 200),
    "MC Dropout": _WRN,
    "Deep Ensemble": Released("WRN-28-10", 5.95e9, 100, members=5),
    "DIP-EDL": _WRN,
}


def released(suite: str, method: str) -> Released | None:
    """The released training of a method of the paper; None where it is not known.

    Examples
    --------
    >>> from dipedl.bench.tables.released_cost import released
    >>> wide = released("cifar10", "DIP-EDL")
    >>> f"{wide.flop / 1e15:.0f} PFLOP", f"{wide.cpu_hours:.0f} h", f"{wide.gpu_hours:.1f} h"
    ('143 PFLOP', '264 h', '0.7 h')
    """
    return _CIFAR10.get(method) if suite == "cifar10" else None


def time_to_result(suite: str, lines: Iterable[Line]) -> list[list[str]]:
    """Rows of a table: method; ours, training and scoring of a seed; the released pipeline."""
    rows = []
    for line in lines:
        theirs = released(suite, line.paper or "")
        if theirs is None or line.cost is None:
            continue
        ours = (line.cost.train_seconds + line.cost.score_seconds) / 60
        members = f"{theirs.members} x " if theirs.members > 1 else ""
        rows.append(
            [
                line.title,
                f"{ours:.1f} min",
                f"{members}{theirs.network}, {theirs.epochs} epochs",
                f"{theirs.flop / 1e15:.1f}",
                f"{theirs.cpu_hours:.0f} h",
                f"{theirs.gpu_hours:.1f} h",
            ]
        )
    return rows
