import numpy as np
import pytest

from dipedl_bench.tables.trivial import (
    DETECTORS,
    border_ink,
    ink,
    trivial_lines,
)


def test_border_by_a_loop():
    images = np.random.default_rng(0).random((3, 2, 5, 4))
    for image, value in zip(images, border_ink(images), strict=True):
        cells = [
            image[c, i, j]
            for c in range(2)
            for i in range(5)
            for j in range(4)
            if i in (0, 4) or j in (0, 3)
        ]
        assert value == pytest.approx(np.mean(cells))


def test_ink():
    images = np.stack([np.full((1, 2, 2), v) for v in (0.1, 0.5)])
    np.testing.assert_allclose(ink(images), [0.1, 0.5])
    unusual = DETECTORS["unusual mean intensity"]
    np.testing.assert_allclose(unusual(images, np.array([[0.2, 0.4]])), [0.2, 0.2])


def test_lines_of_the_table():
    """White images against black ones with one grey among them, by counting pairs."""
    known = np.zeros((4, 1, 3, 3))
    known[0] = 1
    images = {
        "test": known,
        "ood/white": np.ones((2, 1, 3, 3)),
        "ood/black": np.zeros((4, 1, 3, 3)),
    }
    border, mean, unusual = trivial_lines(images, reference=np.zeros((1, 1, 3, 3)))
    assert (border.name, border.title, border.cost) == ("border-ink", "border ink", None)
    assert border.cells["auroc/white"].mean == (6 + 2 / 2) / 8
    assert border.cells["auroc/black"].mean == (12 / 2) / 16
    assert mean.cells == unusual.cells == border.cells
    assert border.cells["fpr95/white"].mean == 0.25
    assert {name.partition("/")[0] for name in border.cells} == {
        "auroc",
        "aupr",
        "aupr_in",
        "caught_5",
        "fpr95",
    }
