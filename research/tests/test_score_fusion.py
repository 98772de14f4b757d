"""A rule by known data alone for which score to trust: what it does where errors say which."""

import numpy as np
import pytest

from dipedl_bench.studies.fusion import fuse_by_errors, fusion_frame
from dipedl_bench.studies.sweeps import Parts


def made_parts(errors_by_density):
    """Make a test set whose errors lie where the density, or else the entropy, says so."""
    rng = np.random.default_rng(0)
    top = rng.uniform(0.5, 1.0, 2000)
    z = rng.normal(size=2000)
    odd = z < np.quantile(z, 0.1) if errors_by_density else top < 0.55
    y = np.where(odd, 1, 0)
    far = np.full(300, 0.99)
    proba = {"test": np.column_stack([top, 1 - top]), "far": np.column_stack([far, 1 - far])}
    return Parts(1000.0, y, proba, {"test": z, "far": np.full(300, -np.inf)})


@pytest.mark.parametrize("errors_by_density", [True, False])
def test_the_score_that_knows_the_errors_gets_the_weight(errors_by_density):
    found = fuse_by_errors(made_parts(errors_by_density))
    assert found["density"]["far"] == 1 and found["entropy"]["far"] < 0.1
    assert found["weight"]["entropy"] == (0 if errors_by_density else 1)
    same = "density" if errors_by_density else "entropy"
    assert found["fused"]["far"] == pytest.approx(found[same]["far"])


def test_rows_that_are_judged_have_no_part_in_the_weight():
    """Errors of each half are where another score says so: each half is judged by the other's."""
    parts = made_parts(True)
    halves = np.array_split(np.random.default_rng(0).permutation(2000), 2)
    y = parts.y.copy()
    y[halves[1]] = parts.proba["test"][halves[1], 0] < 0.55
    found = fuse_by_errors(Parts(parts.n, y, parts.proba, parts.z))
    assert found["weight"]["entropy"] == 0.5  # 0 on one half, 1 on the other
    wanted = (found["density"]["far"] + found["entropy"]["far"]) / 2
    assert found["fused"]["far"] == pytest.approx(wanted, abs=0.01)


def test_without_an_error_no_weight_is_guessed():
    parts = made_parts(True)
    sure = Parts(parts.n, np.zeros(2000, int), parts.proba, parts.z)
    with pytest.raises(ValueError, match="0 wrong of 1000: no weight"):
        fuse_by_errors(sure)


def test_a_table_has_means_over_runs():
    frame = fusion_frame([made_parts(True), made_parts(False)], {"far": "far away"})
    assert list(frame["score"]) == ["density", "entropy", "fused, entropy's weight 0.50"]
    assert frame["AUROC, far away"][0] == "1.000"
