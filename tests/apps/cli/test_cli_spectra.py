import csv
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("astropy")
pytest.importorskip("safetensors")

from typer.testing import CliRunner

import dipedl
from dipedl.apps.cli.app import app
from dipedl.apps.spectra import (
    Failure,
    Spectra,
    classification,
    paper_grid,
    read_spectra,
    toy_spectra,
)
from dipedl.features.scaling import FarRowsWarning
from fits_writers import SDSS_GRID, write_sdss

KINDS = ("GALAXY", "QSO", "STAR")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def table(path):
    with open(path, newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """SDSS files of 60 made-up spectra, and two files that cannot be used."""
    folder = tmp_path_factory.mktemp("plate")
    toys = toy_spectra(60, random_state=3)
    for i, flux in enumerate(toys.flux):
        on_grid = np.interp(SDSS_GRID, paper_grid(), flux)
        facts = {"kind": KINDS[toys.label[i]], "snr": float(toys.snr[i])}
        write_sdss(folder / f"spec-{i:02d}.fits", flux=on_grid, **facts)
    (folder / "spec-05a.fits").write_bytes(b"no FITS")
    write_sdss(folder / "spec-90.fits", ivar=np.zeros(len(SDSS_GRID)))
    return folder


@pytest.fixture(scope="module")
def few(folder):
    """A folder of the first of these files."""
    few = folder.parent / "few"
    few.mkdir()
    for i in range(8):
        (few / f"spec-{i:02d}.fits").symlink_to(folder / f"spec-{i:02d}.fits")
    return few


@pytest.fixture(scope="module")
def fitted(folder):
    """What `fit` printed, and the model that it wrote."""
    path = folder.parent / "model.dipedl"
    typed = [folder, "--classes", "GALAXY,QSO", "--out", path]
    done = invoke("spectra", "fit", *typed)
    assert done.exit_code == 0, done.output
    return done, path


def test_fit_says_what_it_learned(fitted):
    done, path = fitted
    assert "Learned:  GALAXY 27, QSO 15\n" in done.stdout
    assert "Held out: accuracy 0." in done.stdout and "recall GALAXY 0." in done.stdout
    assert f"Model:    {path}\n" in done.stdout
    assert "spec-05a.fits: damaged, or no FITS file" in done.stderr
    assert "spec-90.fits: all its pixels are masked" in done.stderr


def test_model_needs_no_pickle_and_no_trust_beyond_the_named_types(fitted):
    _, path = fitted
    assert b"pickle" not in path.read_bytes()
    model = classification.read_model(path)
    assert [name for name, _ in model.steps[:3]] == ["energy", "smoothing", "features"]
    assert model[-1].classes_.tolist() == ["GALAXY", "QSO"]


def test_classify_writes_a_row_for_every_file(fitted, folder, tmp_path):
    _, path = fitted
    out = tmp_path / "table.csv"
    done = invoke("spectra", "classify", path, folder, "--out", out)
    assert done.exit_code == 0, done.output
    rows = table(out)
    assert [row["file"] for row in rows] == sorted(str(p) for p in folder.iterdir())
    failed = [row for row in rows if row["reason"]]
    assert [row["name"] for row in failed] == ["spec-05a.fits", "spec-90.fits"]
    assert all(row["predicted"] == row["p_QSO"] == row["unknown"] == "" for row in failed)

    # the same answers as the model gives to what the reader reads
    spectra = read_spectra(folder)
    model = dipedl.load(path, trusted=dipedl.io.model_file.describe(path)["untrusted_types"])
    Z = model[:-1].transform(spectra.flux)
    proba, vacuity = model[-1].predict_proba(Z), model[-1].uncertainty(Z)
    flagged = model[-1].predict_ood(Z, alpha=0.05) == -1
    good = [row for row in rows if not row["reason"]]
    assert [row["name"] for row in good] == spectra.name.tolist()
    np.testing.assert_allclose([float(r["p_QSO"]) for r in good], proba[:, 1], atol=1e-6)
    np.testing.assert_allclose([float(r["vacuity"]) for r in good], vacuity, atol=1e-6)
    np.testing.assert_allclose([float(r["snr"]) for r in good], spectra.snr, atol=0.01)
    assert [row["unknown"] == "yes" for row in good] == flagged.tolist()
    names = np.array(["GALAXY", "QSO"])
    assert [row["predicted"] for row in good] == names[proba.argmax(axis=1)].tolist()
    assert [row["header_class"] for row in good] == [KINDS[i] for i in spectra.label]

    # the summary counts the same rows
    stars = [row for row in good if row["header_class"] == "STAR"]
    answers = ["unknown" if row["unknown"] == "yes" else row["predicted"] for row in stars]
    counts = [answers.count(name) for name in ("GALAXY", "QSO", "unknown")]
    line = next(line for line in done.stdout.splitlines() if line.startswith("STAR"))
    assert [int(cell) for cell in line.split()[1:]] == counts
    assert "60 spectra and 2 failures" in done.stdout


def test_more_false_alarms_more_unknown(fitted, folder, tmp_path):
    _, path = fitted
    found = []
    for rate in (0.05, 0.5):
        out = tmp_path / f"{rate}.csv"
        some = f"{folder}/spec-[0-2]*"
        invoke("spectra", "classify", path, some, "--out", out, "--false-alarms", rate)
        rows = [row for row in table(out) if not row["reason"]]
        assert all((row["unknown"] == "yes") == (float(row["p_value"]) <= rate) for row in rows)
        found.append(sum(row["unknown"] == "yes" for row in rows))
    assert found[0] < found[1]


def test_batches_do_not_change_the_table(fitted, folder, tmp_path, monkeypatch):
    _, path = fitted
    tables = []
    for size in (500, 3):
        monkeypatch.setattr(classification, "_AT_ONCE", size)
        invoke("spectra", "classify", path, f"{folder}/spec-0*", "--out", tmp_path / "a.csv")
        tables.append(table(tmp_path / "a.csv"))
    assert len(tables[0]) == 11
    for one, other in zip(*tables, strict=True):
        for column, cell in one.items():
            if column.startswith("p_") or column == "vacuity":  # float32 rounds by the batch
                assert cell == other[column] or abs(float(cell) - float(other[column])) < 1e-4
            else:
                assert cell == other[column]


def test_classes_out_of_a_table(folder, tmp_path, monkeypatch):
    """Names or files with their classes; spectra that are not in it are left out."""
    rows = [("file", "class"), *((f"x/spec-{i:02d}.FITS.gz", "AB"[i % 2]) for i in range(40))]
    (tmp_path / "labels.csv").write_text("\n".join(",".join(row) for row in rows))
    seen = {}

    def fit_model(found, seed):
        seen.update(n=len(found.flux), classes=found.classes.tolist(), seed=seed)
        raise ValueError("enough seen")

    monkeypatch.setattr(classification, "fit_model", fit_model)
    done = invoke("spectra", "fit", folder, "--labels", tmp_path / "labels.csv", "--seed", 4)
    assert (done.exit_code, seen["n"], seen["seed"]) == (1, 40, 4)
    assert seen["classes"] == list("AB" * 20)
    invoke("spectra", "fit", folder, "--labels", tmp_path / "labels.csv", "--classes", "B")
    assert seen["classes"] == ["B"] * 20


def test_try_out_on_made_up_spectra(fitted, tmp_path, monkeypatch):
    from dipedl.apps.cli import spectra as commands

    model = classification.read_model(fitted[1])
    seen = {}

    def fit_model(found, seed):
        seen.update(n=len(found.flux), seed=seed)
        warnings.warn("some rows are far", UserWarning, stacklevel=1)
        return model

    monkeypatch.setattr(classification, "fit_model", fit_model)
    monkeypatch.setattr(commands, "_TOY_FIT", 100)
    monkeypatch.setattr(commands, "_TOY_CLASSIFY", 40)
    monkeypatch.setattr(commands, "_TOY_LAMPS", 10)
    monkeypatch.chdir(tmp_path)
    done = invoke("spectra", "fit", "--toy", "--seed", 3)
    assert "Learned:  GALAXY 45, QSO 25 (made-up spectra)" in done.stdout
    assert "dipedl spectra classify spectra.dipedl --toy" in done.stdout
    assert done.stderr.splitlines()[-1] == "note: some rows are far"
    assert seen == {"n": 70, "seed": 3}
    done = invoke("spectra", "classify", "spectra.dipedl", "--toy", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "classes.csv, 50 spectra and 0 failures" in done.stdout
    assert len(table("classes.csv")) == 50
    lamps = next(line for line in done.stdout.splitlines() if line.startswith("LAMP"))
    assert int(lamps.split()[-1]) >= 9  # 10 lamps, which are like nothing that was learned


def test_rows_without_features_are_failures(fitted, folder, tmp_path):
    """What the reader lets pass and the features refuse does not stop the others."""
    _, path = fitted
    model = classification.read_model(path)
    flux = toy_spectra(4).flux.copy()
    flux[2] *= 1e-17
    files = ["gone", "a", "b", "c", "d"]
    spectra = Spectra(flux, paper_grid(), failures=(Failure("gone", None, "damaged"),))

    lines, failures = classification.classify(model, classification.Batch(files, spectra), 0.05)
    assert lines["file"].tolist() == files
    assert lines.predicted.notna().tolist() == [False, True, True, False, True]
    assert [f.file for f in failures] == ["gone", "c"] and "energy" in failures[1].reason
    assert lines.header_class[1] == "" and np.isnan(lines.snr[1])


def test_files_of_spectra_far_from_the_rest_are_named(tmp_path):
    """Users gave files, and know nothing of rows."""
    toys = toy_spectra(40, random_state=1)
    flux = toys.flux.copy()
    flux[7] += 1e3 * (np.arange(flux.shape[1]) == 200)
    files = [f"plate/spec-{i}.fits" for i in range(40)]
    found = classification.Labelled(flux, np.array(["A", "B"] * 20), files, [])
    with pytest.warns(FarRowsWarning, match="files .*'plate/spec-7.fits'.* in file plate/"):
        classification.fit_model(found, 0)


def test_only_failures(fitted, tmp_path):
    _, path = fitted
    (tmp_path / "a.fits").write_bytes(b"")
    done = invoke("spectra", "classify", path, tmp_path, "--out", tmp_path / "t.csv")
    assert done.exit_code == 1 and "0 spectra and 1 failures" in done.stdout
    assert table(tmp_path / "t.csv")[0]["reason"].startswith("damaged")


def test_a_failure_midway_leaves_the_old_table(fitted, folder, tmp_path, monkeypatch):
    _, path = fitted
    out = tmp_path / "t.csv"
    out.write_text("old")

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(classification, "classify", fail)
    done = invoke("spectra", "classify", path, folder, "--out", out)
    assert (done.exit_code, "no space left" in done.stderr) == (1, True)
    assert out.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == ["t.csv"]


HOSTILE = [
    "=1+1.fits",
    "+1.fits",
    "-1.fits",
    "@sum.fits",
    "a\nb.fits",
    "\x1b[2J.fits",
    b"\xff.fits",
]


def test_every_bad_file_has_its_line_whatever_its_name(fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in HOSTILE[:-1]:
        (tmp_path / name).write_bytes(b"")
    write_sdss(tmp_path / "good.fits")
    Path(os.fsdecode(HOSTILE[-1])).write_bytes((tmp_path / "good.fits").read_bytes())
    os.mkfifo(tmp_path / "fifo.fits")
    done = invoke("spectra", "classify", fitted[1], "*.fits", "--out", "=t.csv")
    assert done.exit_code == 0, done.output
    assert "Table: =t.csv, 2 spectra and 7 failures" in done.stdout
    rows = {row["file"]: row for row in table("=t.csv")}  # it is UTF-8
    safe = {"'=1+1.fits", "'+1.fits", "'-1.fits", "'@sum.fits", r"a\nb.fits", r"\x1b[2J.fits"}
    assert rows.keys() == {*safe, "fifo.fits", "good.fits", r"\xff.fits"}
    assert all(rows[name]["name"] == name and rows[name]["reason"] for name in safe)
    assert rows["fifo.fits"]["reason"] == "it is no file but a folder, device, FIFO or socket"
    assert rows[r"\xff.fits"]["name"] == r"\xff" and rows[r"\xff.fits"]["reason"] == ""
    assert "\x1b" not in done.stderr and done.stderr.count("\n") == 1 + 5 + 1


def test_classes_that_look_like_formulas_are_only_shown(tmp_path):
    line = {"name": "n", "file": "f", "header_class": "=A", "snr": -1.0, "p_=A": 1.0, "p_B": 0.0}
    line |= {"predicted": "=A", "vacuity": 0.1, "p_value": 0.5, "unknown": "no", "reason": None}
    with open(tmp_path / "t.csv", "wb") as file:
        classification.write_lines(pd.DataFrame([line]), file, header=True)
    head, line = csv.reader((tmp_path / "t.csv").read_text("utf-8").splitlines())
    assert head[4:6] == ["p_=A", "p_B"]
    assert line[2:8] == ["'=A", "-1.00", "1.000000", "0.000000", "'=A", "0.100000"]


def test_a_table_in_place_of_a_device_is_refused_before_anything_is_read(fitted, tmp_path):
    (tmp_path / "out.csv").symlink_to(os.devnull)
    done = invoke("spectra", "classify", fitted[1], "gone.fits", "--out", tmp_path / "out.csv")
    assert done.exit_code == 1 and "out.csv: it is a device; name a file" in done.stderr


LABELS = {
    "no-column": "name,kind\na,b\n",
    "empty": "name,class\nspec-01,\n",
    "twice": "name,class\nspec-01,A\nspec-01.fits.gz,B\n",
    "fields": "name,class\nspec-01,A,B\nspec-02,A\n",
    "others": "name,class\nelsewhere,A\n",
}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either paths of FITS files or --toy"),
        (("{folder}", "--toy"), "give either paths of FITS files or --toy"),
        (("{folder}/nothing",), "there is no file or folder"),
        (
            ("{folder}/gone.fits",),
            r"could be read: .*gone\.fits: there is no such file",
        ),
        (("{folder}", "--labels", "{labels}/latin.csv"), r"but .*latin\.csv' is none: 'utf-8'"),
        (("{folder}", "--labels", "{labels}/long.csv"), r"long\.csv' is none: field larger"),
        (("{folder}", "--classes", "PLANET"), "no spectrum is of class PLANET"),
        (("{folder}", "--classes", "QSO"), "two classes at least are needed, .* got QSO \\d"),
        (("{folder}", "--out", "/nowhere/m"), "the folder /nowhere does not exist"),
        (("{folder}", "--labels", "{labels}/no-column.csv"), "columns name .* and class, got"),
        (("{folder}", "--labels", "{labels}/empty.csv"), "row 1: name and class must not be"),
        (("{folder}", "--labels", "{labels}/twice.csv"), "row 2: this spectrum has two"),
        (("{folder}", "--labels", "{labels}/fields.csv"), "row 1: it has more fields than"),
        (("{folder}", "--labels", "{labels}/others.csv"), "no spectrum has a class"),
    ],
)
def test_bad_input_of_fit(arguments, message, few, tmp_path, monkeypatch):
    import re

    monkeypatch.chdir(tmp_path)
    for name, text in LABELS.items():
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "latin.csv").write_bytes(b"name,class\nspec-01,\xe4\n")
    (tmp_path / "long.csv").write_text("name,class\n" + "x" * 200_000)
    typed = [a.format(folder=few, labels=tmp_path) for a in arguments]
    done = invoke("spectra", "fit", *typed)
    is_usage = message.startswith("give either")
    assert done.exit_code == (2 if is_usage else 1)
    assert re.search(message, done.stderr), done.stderr
    assert not (tmp_path / "spectra.dipedl").exists()


def test_bad_input_of_classify(fitted, folder, tmp_path):
    _, path = fitted
    done = invoke("spectra", "classify", tmp_path / "gone", folder)
    assert done.exit_code == 1 and "make one with: dipedl spectra fit" in done.stderr
    dipedl.save(dipedl.density.GDADensity().fit(np.eye(6), [0, 1] * 3), tmp_path / "other")
    done = invoke("spectra", "classify", tmp_path / "other", folder)
    assert done.exit_code == 1 and "but it holds a GDADensity" in done.stderr
    (tmp_path / "text").write_text("text")
    assert invoke("spectra", "classify", tmp_path / "text", folder).exit_code == 1
    done = invoke("spectra", "classify", path, folder, "--false-alarms", 5)
    assert done.exit_code == 2 and "--false-alarms must lie between 0 and 1, got 5" in done.stderr


@pytest.mark.slow
def test_without_astropy_it_says_how_to_get_it(folder, tmp_path):
    code = "import sys; sys.modules['astropy'] = None; from dipedl.apps.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "spectra", "fit", str(folder)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert done.returncode == 1
    assert "pip install 'dipedl[spectra]'" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_example(capsys, monkeypatch):
    """What was never learned is called unknown, most of the rest by its name; a damaged file stops
    nothing. Of 40 spectra a few more or less are chance.
    """
    path = Path(__file__).parents[3] / "examples" / "spectra.py"
    monkeypatch.setattr(sys, "argv", [str(path)])
    runpy.run_path(str(path), run_name="__main__")
    shown = capsys.readouterr().out
    assert "Spectra(n=200, " in shown and "Failed: spec-damaged.fits: damaged" in shown
    counts = {line.split()[0]: line.split()[1:] for line in shown.splitlines()[-3:]}
    assert counts["lamp"] == ["0", "0", "10"]
    galaxies, quasars = ([int(c) for c in counts[name]] for name in ("GALAXY", "QSO"))
    assert galaxies[0] > sum(galaxies[1:]) and quasars[1] > quasars[0] + quasars[2]


@pytest.mark.parametrize(
    "command",
    [
        "classify m.dipedl {0} --out m.dipedl",
        "classify m.dipedl {0} --out {0}/a.fits",
        "fit {0} --labels labels.csv --out labels.csv",
    ],
)
def test_an_output_that_is_an_input_is_refused(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("plate").mkdir()
    inputs = [Path("m.dipedl"), Path("labels.csv"), Path("plate/a.fits")]
    for path in inputs:
        path.write_bytes(b"mine")
    done = invoke("spectra", *command.format("plate").split())
    assert done.exit_code == 1 and "would destroy the input" in done.stderr, done.output
    assert all(path.read_bytes() == b"mine" for path in inputs)
