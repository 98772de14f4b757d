"""Names and classes never drive the terminal, and a name that is no UTF-8 refuses no folder."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("safetensors")

from dipedl.apps.large.parts import files_of

N = 240
#: Sets the title of the window, colours, goes back a line, turns the order of letters; a C1 byte.
ODD = "\x1b]0;owned\x07 \x1b[31mred a\rb \u202edesrever \x9b2J up\nForged:  yes"
X = np.random.default_rng(0).normal(size=N)


def quiet(text):
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A folder with data.parquet of odd names and classes, and what is odd."""
    folder, name = tmp_path_factory.mktemp("odd"), ODD
    made = pd.DataFrame({name: X, f"c{name}": np.resize([name, "b", "c"], N)})
    made[f"y{name}"] = np.where(X > 0, name, "other")
    made[f"id{name}"] = [f"{name}{i}" for i in range(N)]
    made.to_parquet(folder / "data.parquet")
    made.assign(**{name: "no number"}).head(3).to_parquet(folder / "bad.parquet")
    (folder / "parts").mkdir()
    made.to_parquet(folder / "parts" / "a.parquet")
    return folder, name


def commands(folder, name, out):
    data, model = folder / "data.parquet", folder / "m.dipedl"
    fit = ["fit", data, "--target", f"y{name}", "--model", "linear", "--out"]
    yield [*fit, model]
    yield [*fit, out / "j.dipedl", "--json"]
    yield ["fit", data, "--target", f"y{name}?"]
    yield ["fit", data, "--target", f"id{name}"]
    yield ["fit", data, "--target", f"y{name}", "--drop", "nothing"]
    yield ["check", data, "--target", f"y{name}"]
    yield ["check", data, "--target", f"y{name}", "--json"]
    yield ["inspect", model]
    yield ["inspect", model, "--json"]
    yield ["score", model, data, "--out", out / "a.csv"]
    yield ["score", model, data, "--out", out / "a.csv", "--json"]
    yield ["score", model, folder / "bad.parquet", "--out", out / "a.csv"]
    yield ["score", model, folder / "parts", "--out", out / "parts", "--workers", "1"]
    yield ["explain", model, data, "--rows", "2"]
    yield ["explain", model, data, "--rows", "2", "--json"]
    yield ["explain", model, '{"a": 1}']
    yield ["report", model, data, "--out", out / "r.html"]
    yield ["monitor", model, data, "--window", "50", "--page", out / "m.html"]
    yield ["compare", model, model, data]
    yield ["compare", model, model, data, "--json"]


def test_names_and_classes_never_drive_the_terminal(odd, run, tmp_path):
    folder, name = odd
    for words in commands(folder, name, tmp_path):
        done = run(*words)
        assert done.exception is None or isinstance(done.exception, SystemExit), words
        assert quiet(done.output), words
        if "--json" in words:
            assert json.loads(done.stdout)
        elif done.exit_code == 0 and words[0] in ("fit", "inspect"):
            assert "\nForged" not in done.output


LINEAR = ("--target", "y", "--model", "linear")
UNDECODABLE = os.fsdecode(b"m\xfcnchen")


def kept_model(run, folder):
    frame = pd.DataFrame({"x": X, "y": np.where(X > 0, "a", "b")})
    frame.to_parquet(folder / "data.parquet")
    done = run("fit", folder / "data.parquet", *LINEAR, "--out", folder / "m")
    assert done.exit_code == 0, done.output
    return frame


@pytest.mark.skipif(os.name == "nt", reason="names of files are texts there")
def test_a_name_that_is_no_utf8_refuses_no_folder(run, tmp_path):
    frame = kept_model(run, tmp_path)
    parts = tmp_path / "parts"
    (parts / f"where={UNDECODABLE}").mkdir(parents=True)
    frame.to_parquet(parts / "a.parquet")
    content = (parts / "a.parquet").read_bytes()
    (parts / f"{UNDECODABLE}.parquet").write_bytes(content)
    (parts / f"where={UNDECODABLE}" / "c.parquet").write_bytes(content)
    (parts / f"{UNDECODABLE}.txt").write_text("no data")
    assert len(files_of(str(parts))) == 3
    alone = ("--workers", "1")
    done = run("score", tmp_path / "m", parts, "--out", tmp_path / "out", *alone)
    assert done.exit_code == 0, done.output
    assert f"{3 * N} = {3 * N} answered + 0 refused" in done.output
    one = pd.read_parquet(tmp_path / "out" / "a.parquet")
    other = pd.read_parquet(tmp_path / "out" / r"m\xfcnchen.parquet")
    pd.testing.assert_frame_equal(one, other)
    out = ("--out", tmp_path / "n")
    done = run("fit", parts, *LINEAR, "--density", "gaussians", "--drop", "where", *alone, *out)
    assert "there, yet" not in done.output and "codec" not in done.output


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="names of files are texts there")
def test_a_table_of_a_name_that_is_no_utf8_is_read(run, tmp_path):
    frame = pd.DataFrame({"x": X, "y": np.where(X > 0, "a", "b")})
    frame.to_csv(tmp_path / "data", index=False)
    odd = tmp_path / UNDECODABLE
    (tmp_path / "data").rename(odd)
    assert run("fit", odd, *LINEAR, "--out", tmp_path / "n").exit_code == 0
    done = run("score", tmp_path / "n", odd, "--out", tmp_path / "a.csv")
    assert done.exit_code == 0 and f"{N} = {N} answered" in done.output
    for command in (["inspect", tmp_path / "n"], ["check", odd, "--target", "y"]):
        assert run(*command).exit_code in (0, 3)
    done = run("report", tmp_path / "n", odd, "--out", tmp_path / "r.html")
    assert done.exit_code == 0 and r"m\xfcnchen" in (tmp_path / "r.html").read_text()


@pytest.mark.skipif(os.name == "nt", reason="names of files are texts there")
def test_images_of_names_that_are_no_utf8_are_answered(run, tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for label in ("a", UNDECODABLE):
        (tmp_path / "images" / label).mkdir(parents=True)
        for i in range(20):
            grey = rng.random((16, 16)) * 100 + 100 * (label == "a")
            name = f"{UNDECODABLE}{i}.png" if i % 2 else f"{i}.png"
            with open(tmp_path / "images" / label / name, "wb") as file:
                pillow.fromarray(grey.astype("uint8")).save(file, "png")
    done = run("fit", tmp_path / "images", "--images", "--out", tmp_path / "m")
    assert done.exit_code == 0, done.output
    done = run("score", tmp_path / "m", tmp_path / "images", "--out", tmp_path / "a.parquet")
    assert done.exit_code == 0, done.output
    assert re.search(r"m\\xfcnchen \d+", done.output)
