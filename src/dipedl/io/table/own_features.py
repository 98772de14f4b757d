"""Transformers of this library."""

from __future__ import annotations

from typing import Any

from .. import checks as c
from .entry import WIDE, Entry


def _windows_lie_within(lines: Any, sizes: c.Sizes) -> None:
    first, after = lines.windows_.T
    c.need((first < after).all(), "have a window without a pixel")
    c.need((lines.windows_ <= sizes["d"]).all(), "have windows beyond the pixels")


def _blocks_are_filled(blocks: Any, sizes: c.Sizes) -> None:
    size, number_ = blocks.block_size_, blocks.n_blocks
    c.need(-(-sizes["d"] // size) == number_, "have blocks that do not fill the pixels")


def _window_fits(filter_: Any, sizes: c.Sizes) -> None:
    c.need(sizes["w"] <= sizes["d"], "have a window wider than the pixels")
    c.need(filter_.edges_.shape[1] == sizes["w"] // 2, "have other ends than half a window")


ENTRIES: dict[str, Entry] = {
    "preprocessing.LogitPixels": Entry(
        WIDE, parameters={"levels": c.number(2, 2**53), "lam": c.number(0, 0.5)}
    ),
    "preprocessing.SignedPower": Entry(WIDE, parameters={"exponent": c.number(0, 1)}),
    "spectra.BlockStatistics": Entry(
        WIDE | {"block_size_": c.count(least=1)},
        parameters={"n_blocks": c.count(least=1)},
        where=(_blocks_are_filled,),
    ),
    "spectra.EnergyNormalizer": Entry(WIDE, parameters={"eps": c.real(0)}),
    "spectra.LineMeans": Entry(
        WIDE | {"windows_": c.ints("*", 2, least=0)}, where=(_windows_lie_within,)
    ),
    "spectra.PrincipalComponents": Entry(
        WIDE
        | {"components_": c.floats("c", "d"), "mean_": c.floats("d")}
        | {"explained_variance_ explained_variance_ratio_": c.floats("c")}
    ),
    "spectra.SavitzkyGolay": Entry(
        WIDE
        | {"window_": c.count("w", 1), "taps_": c.floats("w"), "edges_": c.floats(2, "*", "w")},
        where=(_window_fits,),
    ),
}
