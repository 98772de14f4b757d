import numpy as np
import pytest
from small_parts import small_parts

from dipedl_bench.studies.sweeps import gamma_sweep, sigma_corruption


@pytest.fixture(scope="module")
def rows(parts):
    return sigma_corruption(parts)


def test_no_noise_is_the_method_itself(parts, rows):
    assert rows[0.0] == [gamma_sweep(parts, (1.0,))[1.0]]


def test_a_draw_is_its_seed(parts, rows):
    again = sigma_corruption(parts, (2.0,), (3,))
    assert again[2.0] == [rows[2.0][3]]


def test_noise_is_scaled_and_shared(parts, rows):
    """Draw 1 by hand: one stream of normals through the splits in their order."""
    rng = np.random.default_rng(1)
    z = {split: values + 5 * rng.standard_normal(len(values)) for split, values in parts.z.items()}
    noisy = type(parts)(parts.n, parts.y, parts.proba, z)
    assert rows[5.0][1] == gamma_sweep(noisy, (1.0,))[1.0]


def test_noise_alone_knows_nothing():
    parts = small_parts(rows=4000)
    draws = sigma_corruption(parts, (np.inf,))[np.inf]
    values = [row["auroc/far"] for row in draws]
    # sd of the AUROC of unrelated scores, 4,000 against 2,000, is about 0.008
    assert np.abs(np.mean(values) - 0.5) < 4 * 0.008 / np.sqrt(5)
    assert 0 < np.std(values) < 0.03
