import hashlib
import io
import zipfile

import numpy as np
import pytest

from dipedl_bench.datasets import files, images, load_omniglot


def test_order_pixels_and_labels(tiny):
    folder, arrays = tiny
    data = load_omniglot(data_dir=folder)
    np.testing.assert_array_equal(
        np.rint(data.X_test * 255).reshape(-1, 28, 28), arrays["omniglot"]
    )
    # by hand: rows 0..1 all ink, 2..3 no ink, 4..5 ink above the middle
    assert data.X_test[:2].max() == 0 and data.X_test[2:4].min() == 1
    half = data.X_test[4].reshape(28, 28)
    assert half[:13].max() == 0 and half[15:].min() == 1
    assert data.y_test.tolist() == [0, 0, 1, 1, 2, 2]
    assert data.target_names == (
        "Angelic/character01",
        "Angelic/character02",
        "Tengwar/character01",
    )
    assert data.X_train.shape == (0, 784) and data.name == "omniglot"


def test_inverted(tiny):
    folder, _ = tiny
    inverted = load_omniglot(inverted=True, data_dir=folder)
    assert inverted.name == "omniglot_inverted" and inverted.X_test.dtype == np.float32
    np.testing.assert_array_equal(inverted.X_test, 1 - load_omniglot(data_dir=folder).X_test)


def test_unpacked_once(tiny, monkeypatch):
    folder, _ = tiny
    load_omniglot(data_dir=folder)
    monkeypatch.setattr(images, "_resized", None)
    load_omniglot(data_dir=folder)


def test_other_content_is_refused(tiny, monkeypatch):
    folder, arrays = tiny
    monkeypatch.setitem(files.TABLES["omniglot"], "sha256", "0" * 64)
    message = f"SHA-256 {'0' * 64}, got: 6 with {arrays['omniglot_sha256']}"
    with pytest.raises(ValueError, match=message):
        load_omniglot(data_dir=folder)


@pytest.mark.data
def test_real_counts(full_dir):
    data = load_omniglot(data_dir=full_dir)
    assert data.X_test.shape == (13_180, 784)
    assert np.bincount(data.y_test).tolist() == [20] * 659
    assert data.X_test.mean(dtype=np.float64) > 0.9  # dark strokes on white


@pytest.mark.data
def test_real_archive_is_105_pixels_black_on_white(full_dir):
    from PIL import Image

    with zipfile.ZipFile(full_dir / "omniglot/images_evaluation.zip") as archive:
        names = sorted(n for n in archive.namelist() if n.endswith(".png"))
        for name in names[::400]:
            with Image.open(io.BytesIO(archive.read(name))) as image:
                assert image.size == (105, 105) and image.convert("L").getextrema() == (0, 255)


@pytest.mark.data
def test_real_pixels_by_an_antialiasing_of_our_own(full_dir):
    """The triangle filter of bilinear antialiasing, written out in floating point."""
    from PIL import Image

    scale = 105 / 28
    centres = (np.arange(28) + 0.5) * scale
    weights = np.clip(1 - np.abs(np.arange(105) + 0.5 - centres[:, None]) / scale, 0, None)
    weights /= weights.sum(axis=1, keepdims=True)
    drawings, names = images.read_drawings(full_dir / "omniglot/images_evaluation.zip", 0)
    with zipfile.ZipFile(full_dir / "omniglot/images_evaluation.zip") as archive:
        for row in range(0, 13_180, 997):
            with Image.open(io.BytesIO(archive.read(names[row]))) as image:
                pixels = np.asarray(image.convert("L"), float)
            assert np.abs(weights @ pixels @ weights.T - drawings[row]).max() <= 1.01
    assert hashlib.sha256(drawings.tobytes()).hexdigest() == files.TABLES["omniglot"]["sha256"]
