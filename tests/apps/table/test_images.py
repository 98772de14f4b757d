"""A folder of images is fitted, scored and reported on like a table."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("PIL")

from PIL import Image as pillow

from dipedl.apps.table.errors import UserError
from dipedl.apps.table.fit import _notes_of_network
from dipedl.apps.table.images import checksum, network_of, open_images
from dipedl.apps.table.reading import sample_rows


def drawn(folder, n=30, seed=0):
    """Images of a bright left half and of a bright right half, of several sizes."""
    rng = np.random.default_rng(seed)
    for side in ("left", "right"):
        (folder / side).mkdir(parents=True)
        for i in range(n):
            size = 16 + 8 * (i % 2)
            image = rng.integers(0, 60, (size, size, 3), dtype=np.uint8)
            half = image[:, : size // 2] if side == "left" else image[:, size // 2 :]
            half += 150
            pillow.fromarray(image).save(folder / side / f"{i}.png")
    return folder


def test_images_become_rows_of_pixels(tmp_path):
    frame = sample_rows(open_images(drawn(tmp_path / "photos", n=3))).frame
    assert list(frame)[:4] == ["file", "class", "pixel_0_0", "pixel_0_1"]
    assert frame.columns[-1] == "pixel_15_15" and frame.shape == (6, 2 + 256)
    assert frame["class"].tolist() == ["left"] * 3 + ["right"] * 3
    with pillow.open(tmp_path / "photos" / "left" / "0.png") as image:
        grey = np.asarray(image.convert("L"), float) / 255
    np.testing.assert_allclose(frame.iloc[0, 2:].to_numpy(float), grey.ravel(), atol=1e-6)


def test_levels_of_16_bits_are_those_of_8_and_others_are_refused(tmp_path):
    levels = np.arange(256, dtype=np.uint8).reshape(16, 16)
    for folder, name, pixels in (
        ("a", "8.png", levels),
        ("a", "16.png", levels * np.uint16(257)),
        ("a", "16.tif", levels * np.uint16(257)),
        ("b", "32.tif", levels.astype(np.int32)),
        ("b", "real.tif", levels.astype(np.float32) / 255),
    ):
        (tmp_path / folder).mkdir(exist_ok=True)
        pillow.fromarray(pixels).save(tmp_path / folder / name)
    some = sample_rows(open_images(tmp_path))
    np.testing.assert_allclose(
        some.frame.iloc[:, 2:].to_numpy(float), [levels.ravel() / 255] * 3, atol=1e-6
    )
    assert [one.row for one in some.refused] == [4, 5]
    assert all("write them with 8 or 16 bits" in one.reason for one in some.refused)


@pytest.mark.slow
def test_images_from_the_shell(run, tmp_path):
    folder, new = drawn(tmp_path / "photos"), drawn(tmp_path / "new", n=4, seed=1)
    (new / "left" / "broken.png").write_bytes(b"no image")
    model, out = tmp_path / "m.dipedl", tmp_path / "a.csv"
    done = run("fit", folder, "--images", "--model", "linear", "--out", model)
    assert done.exit_code == 0, done.output
    assert "image                16 x 16 grey pixels\nLearned:  class from 60 rows" in done.stdout
    assert "logistic regression on 6 principal components" in done.stdout
    assert "pixel_0_0" not in done.stdout + run("inspect", model).stdout
    done = run("score", model, new, "--columns", "file,class", "--out", out)
    assert done.exit_code == 3 and "broken.png cannot be read as an image" in done.stderr
    found = pd.read_csv(out)
    assert len(found) == 8 and (found["label"] == found["class"]).all()
    assert list(found)[:4] == ["file", "row", "class", "label"]
    assert found["file"].str.endswith(".png").all()
    page = tmp_path / "report.html"
    assert run("report", model, new, "--out", page).exit_code == 3
    assert "The 10 columns of 256 that differ most" in page.read_text("utf-8")
    assert f"{found['file'][0][-40:]}</td>" in page.read_text("utf-8")
    said = run("explain", model, new, "--rows", "1").stdout
    assert said.startswith(f"Row 1, {found['file'][0]}\n")


def network(path, *layers):
    """A network of the mean of each channel, and more layers by their names, in a file of ONNX."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    tensor, float32 = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    kinds = ["GlobalAveragePool", "Flatten", *layers]
    ends = ["x", *(f"z{j}" for j in range(len(kinds)))]
    nodes = [onnx.helper.make_node(kind, [ends[j]], [ends[j + 1]]) for j, kind in enumerate(kinds)]
    shapes = [tensor("x", float32, [1, 3, 8, 8])], [tensor(ends[-1], float32, [1, 3])]
    graph = onnx.helper.make_graph(nodes, "means", *shapes)
    opset = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    return path


def test_a_network_gives_the_features(run, tmp_path):
    made = network(tmp_path / "n.onnx")
    frame = sample_rows(open_images(drawn(tmp_path / "photos", n=3), str(made))).frame
    with pillow.open(tmp_path / "photos" / "left" / "0.png") as image:
        means = np.asarray(image.convert("RGB").resize((8, 8)), float).mean(axis=(0, 1)) / 255
    np.testing.assert_allclose(frame.iloc[0, 2:].to_numpy(float), means, rtol=1e-5)


@pytest.mark.parametrize("layers", [(), ("Softmax",), ("LogSoftmax",)])
def test_a_network_that_ends_in_a_softmax_is_noticed(layers, tmp_path):
    made = network(tmp_path / "n.onnx", *layers)
    table = open_images(drawn(tmp_path / "photos", n=3), str(made))
    X = sample_rows(table).frame.drop(columns=["file", "class"])
    assert list(X) == ["feature_0", "feature_1", "feature_2"]
    notes = _notes_of_network(table, X)
    assert len(notes) == len(layers) and all("ends in a softmax" in note for note in notes)


def test_the_network_is_found_beside_the_model_and_a_changed_one_is_refused(tmp_path):
    made = network(tmp_path / "n.onnx")
    known = str(made), checksum(str(made))
    assert network_of("", "", tmp_path) == "" and network_of(*known, tmp_path) == known[0]
    (tmp_path / "moved").mkdir()
    moved = made.rename(tmp_path / "moved" / "n.onnx")
    assert network_of(*known, tmp_path / "moved") == str(moved)
    with pytest.raises(UserError, match=r"n\.onnx is not there: put it into"):
        network_of(*known, tmp_path)
    network(moved, "Softmax")
    with pytest.raises(UserError, match="is not the network that the model was fitted with"):
        network_of(*known, tmp_path / "moved")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["photos.csv", "--images"], 1, "in a folder with a folder for each class"),
        (["empty", "--images"], 1, "empty holds no image that ends in .bmp"),
        (["photos", "--images", "--extractor", "no.onnx"], 1, "no.onnx: there is no such file"),
        (["photos", "--images", "--extractor", "photos.csv"], 1, "is no ONNX network"),
        (["photos", "--images", "--extractor", "n.pt"], 1, "is a file of PyTorch, which can run"),
        (["photos.csv", "--target", "a", "--extractor", "n"], 2, "--extractor is for --images"),
        (["photos.csv"], 2, "--target must be given"),
    ],
)
def test_mistakes_with_images(arguments, code, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn(tmp_path / "photos", n=1)
    (tmp_path / "empty").mkdir()
    (tmp_path / "n.pt").write_bytes(b"PK\x03\x04")
    (tmp_path / "photos.csv").write_text("a,b\n1,2\n")
    if "photos.csv" in arguments[2:]:
        pytest.importorskip("onnxruntime")
    done = run("fit", *arguments)
    assert (done.exit_code, done.stderr.count("dipedl: ")) == (code, 1), done.output
    assert message in done.stderr and not list(tmp_path.glob("*.dipedl"))
