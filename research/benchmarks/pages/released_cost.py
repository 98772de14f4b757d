"""What the released pipeline would cost, by its number of operations, beside our minutes.

The released code was not run. A training takes three times the operations of a forward pass for
every image and epoch, two for each multiplication. The rates are assumed, for a machine that does
nothing else: 700 GFLOP/s in bfloat16 on two CPU cores with AVX512-BF16, as our shared network of
CIFAR-10 trained, and 100 TFLOP/s in half precision on an H200, on top of which one process augments
images, at 10 s an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable

from dipedl_bench.spec.captions import Released, captions_of
from dipedl_bench.tables.table import Line

__all__ = ["time_to_result"]

_N = 40_000
_CPU_FLOPS = 700e9
_GPU_FLOPS = 100e12
#: Seconds in which one process turns, shifts and mirrors the images of an epoch.
_AUGMENT = 10.0


def time_to_result(suite: str, lines: Iterable[Line]) -> list[list[str]]:
    """Rows of a table: method; our CPU minutes for a seed; the released pipeline.

    Variants of a method share its network and are left out.
    """
    released, rows = dict(captions_of(suite).released), []
    for line in lines:
        theirs = released.pop(line.paper or "", None)
        if theirs is not None and line.cost is not None:
            rows.append(
                [line.title, f"{line.cost['cpu_seconds'] / 60:.0f} min", *_released(theirs)]
            )
    return rows


def _released(of: Released) -> list[str]:
    flop = 2 * 3 * of.multiplications * _N * of.epochs * of.members
    gpu = flop / _GPU_FLOPS + _AUGMENT * of.epochs * of.members
    members = f"{of.members} x " if of.members > 1 else ""
    return [
        f"{members}{of.network}, {of.epochs} epochs",
        f"{flop / 1e15:.1f}",
        f"{flop / _CPU_FLOPS / 3600:.0f} h",
        f"{gpu / 3600:.1f} h",
    ]
