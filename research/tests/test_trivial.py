import numpy as np
import pytest

from dipedl_bench.tables.trivial import (
    DETECTORS,
    _kept,
    border_ink,
    ink,
    trivial_lines,
    unusual_ink,
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


def test_only_the_border_counts():
    image = np.zeros((1, 1, 28, 28))
    image[..., 1:-1, 1:-1] = 1
    assert border_ink(image) == 0
    image[..., 0, 0] = 1
    assert border_ink(image) == pytest.approx(1 / 108)


def test_ink():
    images = np.stack([np.full((1, 2, 2), v) for v in (0.1, 0.5)])
    np.testing.assert_allclose(ink(images), [0.1, 0.5])
    np.testing.assert_allclose(unusual_ink(images, np.array([[0.2, 0.4]])), [0.2, 0.2])


def test_float32_images_are_summed_in_float64():
    images = np.full((1, 1, 28, 28), np.float32(0.1))
    assert ink(images)[0] == pytest.approx(float(np.float32(0.1)), rel=1e-15)
    assert border_ink(images).dtype == np.float64


def test_all_detectors_are_called_alike():
    rng = np.random.default_rng(0)
    for detect in DETECTORS.values():
        scores = detect(rng.random((7, 1, 6, 6)), rng.random((5, 36)))
        assert scores.shape == (7,) and np.isfinite(scores).all()


def test_rows_of_pixels_are_refused():
    for detect in DETECTORS.values():
        with pytest.raises(ValueError, match="images must have shape"):
            detect(np.zeros((2, 784)), np.zeros((2, 784)))


def test_lines_of_the_table():
    """White images against black ones with one grey among them, by counting pairs."""
    known = np.zeros((4, 1, 3, 3))
    known[0] = 1
    images = {
        "test": known,
        "ood/white": np.ones((2, 1, 3, 3)),
        "ood/black": np.zeros((4, 1, 3, 3)),
    }
    border, mean, unusual = trivial_lines(images, reference=np.zeros((1, 9)))
    assert (border.name, border.title, border.cost) == ("border-ink", "border ink", None)
    assert border.cells["auroc/white"].mean == (6 + 2 / 2) / 8
    assert border.cells["auroc/black"].mean == (12 / 2) / 16
    assert mean.cells == unusual.cells == border.cells
    assert border.cells["aupr/white"].baseline == pytest.approx(2 / 6)
    assert border.cells["aupr_in/white"].baseline == pytest.approx(4 / 6)
    assert border.cells["fpr95/white"].mean == 0.25
    assert {name.partition("/")[0] for name in border.cells} == {
        "auroc",
        "aupr",
        "aupr_in",
        "fpr95",
    }


@pytest.mark.parametrize("text", ["", "{", "[1]", "\0"])
def test_a_damaged_file_of_kept_numbers_is_made_again(tmp_path, text):
    (tmp_path / "trivial.json").write_text(text)
    assert _kept(tmp_path / "trivial.json") == _kept(tmp_path / "absent.json") == {}
