"""Transformers of this library."""

from __future__ import annotations

from typing import Any

from ..checks import (
    Sizes,
    count,
    floats,
    ints,
    need,
    number,
    real,
)
from .entry import WIDE, Entry


def _windows_lie_within(lines: Any, sizes: Sizes) -> None:
    first, after = lines.windows_.T
    need((first < after).all(), "have a window without a pixel")
    need((lines.windows_ <= sizes["d"]).all(), "have windows beyond the pixels")


def _blocks_are_filled(blocks: Any, sizes: Sizes) -> None:
    size, number_ = blocks.block_size_, blocks.n_blocks
    need(-(-sizes["d"] // size) == number_, "have blocks that do not fill the pixels")


def _window_fits(filter_: Any, sizes: Sizes) -> None:
    need(sizes["w"] <= sizes["d"], "have a window wider than the pixels")
    need(filter_.edges_.shape[1] == sizes["w"] // 2, "have other ends than half a window")


ENTRIES: dict[str, Entry] = {
    "preprocessing.LogitPixels": Entry(
        WIDE, parameters={"levels": number(2, 2**53), "lam": number(0, 0.5)}
    ),
    "preprocessing.SignedPower": Entry(WIDE, parameters={"exponent": number(0, 1)}),
    "spectra.BlockStatistics": Entry(
        WIDE | {"block_size_": count(least=1)},
        parameters={"n_blocks": count(least=1)},
        where=(_blocks_are_filled,),
    ),
    "spectra.EnergyNormalizer": Entry(WIDE, parameters={"eps": real(0)}),
    "spectra.LineMeans": Entry(
        WIDE | {"windows_": ints("*", 2, least=0)},
        where=(_windows_lie_within,),
    ),
    "spectra.PrincipalComponents": Entry(
        WIDE
        | {"components_": floats("c", "d"), "mean_": floats("d")}
        | dict.fromkeys(("explained_variance_", "explained_variance_ratio_"), floats("c"))
    ),
    "spectra.SavitzkyGolay": Entry(
        WIDE | {"window_": count("w", 1), "taps_": floats("w"), "edges_": floats(2, "*", "w")},
        where=(_window_fits,),
    ),
}
