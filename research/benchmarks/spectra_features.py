"""Features of spectra: against a loop over spectra, and 100,000 spectra with their memory."""

import os
import time

import harness
import numpy as np
from harness import paired_seconds
from scipy.signal import savgol_filter

from dipedl.apps.spectra import paper_grid, spectral_features, toy_spectra

LOOP = {"n_train": 1200, "n": 400, "n_components": 500}
SCALE = {"n_train": 27_000, "n": 100_000, "n_components": 500}
REPEATS = 5
#: Wavelengths of the lines of the paper: Hα, Hβ, Hγ, Hδ, Mg b, Na D.
LINES = (6562.81, 4861.34, 4340.47, 4101.75, 5183.62, 5889.95)
PRESETS = {"published": 10, "standardised": 11}


def one_by_one(flux: np.ndarray, pipeline, window: int) -> np.ndarray:
    """Compute the features in a loop over spectra, before any scaling."""
    pca = pipeline["features"].named_transformers["pca"]
    near = [np.abs(paper_grid() - line) <= 3 for line in LINES]
    rows = []
    for row in flux:
        x = savgol_filter(row / (np.linalg.norm(row) + 1e-8), window, 3).astype(np.float32)
        blocks = [x[start : start + 60] for start in range(0, 3000, 60)]
        parts = [
            (x - pca.mean_) @ pca.components_.T,
            [x[mask].mean() for mask in near],
            [b.mean() for b in blocks],
            [b.var() for b in blocks],
            [60 * i + b.argmax() for i, b in enumerate(blocks)],
            [60 * i + b.argmin() for i, b in enumerate(blocks)],
            [b.max() for b in blocks],
            [b.min() for b in blocks],
        ]
        rows.append(np.concatenate(parts))
    return np.array(rows)


def against_a_loop(preset: str) -> dict[str, float]:
    flux = toy_spectra(LOOP["n_train"] + LOOP["n"]).flux
    train, rows = flux[: LOOP["n_train"]], flux[LOOP["n_train"] :]
    pipeline = spectral_features(preset, n_components=LOOP["n_components"]).fit(train)
    unscaled = pipeline[:3]
    difference = unscaled.transform(rows) - one_by_one(rows, pipeline, PRESETS[preset])
    times = paired_seconds(
        {
            "ours": lambda: pipeline.transform(rows),
            "loop": lambda: one_by_one(rows, pipeline, PRESETS[preset]),
        },
        REPEATS,
    )
    return {
        f"{preset}: speedup over a loop": round(times["loop"] / times["ours"], 1),
        f"{preset}: largest difference": float(f"{np.abs(difference).max():.1e}"),
    }


def at_scale(preset: str, scale: dict[str, int]) -> dict[str, float]:
    """Seconds and peak of memory of this process, which must be a fresh one."""
    flux = np.empty((scale["n"], 3000), np.float32)
    # Time and memory do not depend on the values, so 5,000 spectra are enough.
    for start in range(0, scale["n"], 5000):
        flux[start : start + 5000] = toy_spectra(5000).flux if start == 0 else flux[:5000]
    start, cpu = time.perf_counter(), time.process_time()
    pipeline = spectral_features(preset, n_components=scale["n_components"])
    features = pipeline.fit(flux[: scale["n_train"]]).transform(flux)
    seconds = time.perf_counter() - start
    if features.shape != (scale["n"], 806) or features.dtype != np.float32:
        raise RuntimeError(f"expected ({scale['n']}, 806) of float32, got {features.shape}")
    return {
        f"{preset}: flux to features s": round(seconds, 1),
        f"{preset}: flux to features CPU s": round(time.process_time() - cpu, 1),
        f"{preset}: peak GiB": round(harness.peak_kib() / 2**20, 2),
    }


def measure() -> harness.Values:
    load = os.getloadavg()[0]
    values: dict[str, float] = {}
    for preset in PRESETS:
        values |= against_a_loop(preset) | harness.in_new_process(at_scale, preset, SCALE)
    values |= {"load at the start": round(load, 1), "cores": os.cpu_count() or 1}
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
