import io

import numpy as np
import pytest

from dipedl_bench.datasets import load_covertype, load_segment


def csv_of(X, y, counts):
    """The published form: numbered columns and lines, then three counts with blanks after them."""
    lines = ["," + ",".join(map(str, range(19)))]
    for i, (row, label) in enumerate(zip(X, y, strict=True)):
        lines.append(",".join([str(i), *map(repr, row.tolist()), repr(float(label))]))
    for i, count in enumerate(counts, start=len(X)):
        lines.append(f"{i},{float(count)}" + "," * 18)
    return ("\n".join(lines) + "\n").encode("ascii")


def test_segment_rows_labels_and_sky(put):
    rng = np.random.default_rng(0)
    X, y, sky = rng.random((60, 18)), np.arange(60) % 6, 2 * rng.random((4, 18))
    put("tabular/segment_id.csv", csv_of(X, y, (60, 18, 6)))
    put("tabular/segment_ood_sky.csv", csv_of(sky, [6] * 4, (4, 18, 6)))
    data = load_segment()
    assert repr(data) == (
        "Dataset('segment', X_train=(48, 18), X_test=(12, 18), n_classes=6, ood={'sky': 4})"
    )
    np.testing.assert_array_equal(data.ood["sky"], sky)
    truth = {row.tobytes(): label for row, label in zip(X, y, strict=True)}
    labels = [truth[row.tobytes()] for row in (*data.X_train, *data.X_test)]
    assert labels == [*data.y_train, *data.y_test]
    assert np.bincount(data.y_test).tolist() == [2] * 6


@pytest.mark.parametrize("kind", range(1, 8))
def test_covertype_left_out(put, kind):
    X, y = np.random.default_rng(0).random((70, 54), np.float32), np.repeat(np.arange(7), 10)
    stream = io.BytesIO()
    np.savez(stream, X=X, y=y)
    put("tabular/covtype_15k.npz", stream.getvalue())
    data = load_covertype(left_out=kind)
    (name,) = data.ood
    np.testing.assert_array_equal(data.ood[name], X[y == kind - 1])
    assert len(data.X_train) == 48 and np.bincount(data.y_test).tolist() == [2] * 6
    names = "Spruce/Fir,Lodgepole Pine,Ponderosa Pine,Cottonwood/Willow,Aspen,Douglas-fir,Krummholz"
    published = names.split(",")
    assert published.pop(kind - 1) == name and data.target_names == tuple(published)


@pytest.mark.parametrize("left_out", [0, 8, "4", None, 1.5])
def test_covertype_unknown_kind(left_out):
    with pytest.raises(ValueError, match=r"left_out must be the number of a kind of forest"):
        load_covertype(left_out=left_out)


@pytest.mark.data
@pytest.mark.usefixtures("full_dir")
def test_real_segment():
    data = load_segment()
    X = np.concatenate([data.X_train, data.X_test])
    y = np.concatenate([data.y_train, data.y_test])
    assert X.shape == (1980, 18) and np.bincount(y).tolist() == [330] * 6
    np.testing.assert_array_equal([X.min(axis=0), X.max(axis=0)], [[0] * 18, [1] * 18])
    assert data.ood["sky"].shape == (330, 18) and data.ood["sky"].max() > 1
    assert not {r.tobytes() for r in data.X_train} & {r.tobytes() for r in data.X_test}


@pytest.mark.data
@pytest.mark.usefixtures("full_dir")
def test_real_covertype():
    data = load_covertype()
    assert data.X_train.shape == (10_368, 54) and data.X_test.shape == (2592, 54)
    assert np.bincount(data.y_train).tolist() == [1728] * 6
    # each patch lies in one wilderness area and has one kind of soil
    assert (data.X_train[:, 10:14].sum(axis=1) == 1).all()
    assert (data.X_train[:, 14:].sum(axis=1) == 1).all()
    # cottonwood grows low, krummholz high up
    assert data.ood["Cottonwood/Willow"][:, 0].mean() < data.X_train[:, 0].mean()
    high = data.X_train[data.y_train == data.target_names.index("Krummholz"), 0].mean()
    assert high > data.X_train[:, 0].mean() + 300
