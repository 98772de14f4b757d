"""Ingredients of semi-real spectra: right names and shapes, arbitrary numbers."""

import numpy as np

from dipedl_bench.datasets.semi_real import STAR_SHARES


def small_ingredients(p=90):
    """Arrays of the right names and shapes on p wavelengths: smooth, positive, arbitrary."""
    rng = np.random.default_rng(3)
    content = {"wavelength": np.linspace(3900.0, 9000.0, p)}
    for name, m, q in (("GALAXY", 23, 700), ("QSO", 17, 900)):
        grid = 3.96 - 1e-3 * np.arange(q)[::-1]
        content |= {
            f"{name}_c": rng.normal(size=(m, 10)).astype(np.float32),
            f"{name}_z": rng.uniform(0.01, 1.5, m).astype(np.float32),
            f"{name}_amp": rng.uniform(0.01, 0.2, m).astype(np.float32),
            f"{name}_poly": (np.array([1, 0, 0]) + rng.normal(0, 0.2, (m, 3))).astype(np.float32),
            f"{name}_sn": rng.uniform(4, 60, m).astype(np.float32),
            f"{name}_key": np.array([f"{name}-{i}" for i in range(m)]),
            f"{name}_E": np.sin(np.outer(1 + np.arange(10), 9 * grid)).astype(np.float32),
            f"{name}_grid": grid.astype(">f8"),
        }
    for i, kind in enumerate(STAR_SHARES):
        x = np.linspace(-1, 1, p)
        basis = [np.exp(-i * x / 4), x, x**2, np.cos(20 * x), np.sin(20 * x)]
        content[f"STAR_{kind}_B"] = np.stack(basis).astype(np.float32)
        coefficients = np.array([1, 0, 0, 0, 0]) + rng.normal(0, 0.1, (5 + i, 5))
        content[f"STAR_{kind}_C"] = coefficients.astype(np.float32)
    content["noise_shape"] = rng.uniform(0.5, 3, (6, p)).astype(np.float32)
    return content
