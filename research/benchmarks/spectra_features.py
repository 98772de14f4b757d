"""Seconds and memory from the flux of 100,000 spectra to their features."""

import os
import time

import harness
import numpy as np

from dipedl.apps.spectra import spectral_features, toy_spectra

SCALE = {"n_train": 27_000, "n": 100_000, "n_components": 500}
PRESETS = ("standardised", "published")


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
        values |= harness.in_new_process(at_scale, preset, SCALE)
    values |= {"load at the start": round(load, 1), "cores": os.cpu_count() or 1}
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
