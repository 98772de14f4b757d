import io

import numpy as np
import pytest

from dipedl_bench.datasets import load_gtsrb


def sheet_of(images, rows, columns=113):
    from PIL import Image

    pixels = np.zeros((rows * 32, columns * 32, 3), np.uint8)
    for i, image in enumerate(images):
        top, left = 32 * (i // columns), 32 * (i % columns)
        pixels[top : top + 32, left : left + 32] = image.transpose(1, 2, 0)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "WEBP", lossless=True, quality=0, method=0)
    return stream.getvalue()


def npy(labels):
    stream = io.BytesIO()
    np.save(stream, labels)
    return stream.getvalue()


@pytest.fixture
def publish(tmp_path, put):
    def write(sheet, labels):
        put(tmp_path, "gtsrb/gtsrb_test_32x32.webp", sheet)
        put(tmp_path, "gtsrb/labels.npy", npy(labels))
        return tmp_path

    return write


def test_sheet_is_cut_row_by_row(publish):
    images = np.random.default_rng(0).integers(0, 256, (115, 3, 32, 32), dtype=np.uint8)
    labels = (np.arange(115) % 43).astype(np.uint8)
    data = load_gtsrb(data_dir=publish(sheet_of(images, rows=2), labels))
    np.testing.assert_array_equal(np.rint(data.X_test * 255).reshape(images.shape), images)
    assert data.y_test.tolist() == labels.tolist() and data.X_train.shape == (0, 3072)
    assert data.n_classes == 43 and data.image_shape == (3, 32, 32)
    assert data.provenance[0].name == "GTSRB (third-party 32x32 resize)"


@pytest.mark.parametrize(("n_labels", "columns"), [(114, 113), (5, 112)])
def test_sheet_and_labels_must_fit(publish, n_labels, columns):
    folder = publish(sheet_of([], 1, columns), np.zeros(n_labels, np.uint8))
    message = (
        rf"113 columns of 32 x 32 pixels with {n_labels} images or more, got: {columns * 32} x"
    )
    with pytest.raises(ValueError, match=message):
        load_gtsrb(data_dir=folder)


def test_labels_are_no_pickle(publish):
    folder = publish(sheet_of([], 1), np.array([print], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        load_gtsrb(data_dir=folder)


def test_it_cannot_be_downloaded():
    with pytest.raises(FileNotFoundError, match=r"no official mirror.*set DIPEDL_DATA"):
        load_gtsrb()


@pytest.mark.data
def test_real_signs(full_dir):
    data = load_gtsrb(data_dir=full_dir)
    assert data.X_test.shape == (12_630, 3072)
    # images of each kind in the benchmark's test set, as published
    assert np.bincount(data.y_test)[:6].tolist() == [60, 720, 750, 450, 660, 630]
    # stop signs (14) are red, the arrow of "keep right" (38) stands on blue
    red, _, blue = data.X_test.reshape(-1, 3, 1024).mean(axis=2).T
    assert np.median((red - blue)[data.y_test == 14]) > 0.01
    assert np.median((red - blue)[data.y_test == 38]) < -0.01
