"""Pages of results: what the rows say, computed, for every suite by one maker."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store

from dipedl_bench import suite_names
from dipedl_bench.results.store import Store
from dipedl_bench.spec.captions import captions_of
from dipedl_bench.studies.sweeps import SWEEPS, load_parts

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import publish  # noqa: E402
from paper_page import page_of_paper  # noqa: E402
from results import page_of  # noqa: E402
from write_pages import page_of_toys  # noqa: E402

SPECTRA = {"suite": "spectra", "ood": ["stars", "supernovae", "real_stars"], "shifted": ["real"]}
SPECTRA |= {"classes": 2, "n_resamples": 0}
PUBLISHED = [name for name in suite_names() if captions_of(name).page is not None]


def spectra(root, profile="scarce", methods=("dip-edl", "dip-edl-default", "edl", "max-softmax")):
    return write_synthetic_store(root, profile=profile, methods=methods, **SPECTRA)


def pages():
    """Every page of results; those of many rows take seconds."""
    for name in [*PUBLISHED, "toys", "paper"]:
        slow = [pytest.mark.slow] * (name in ("mnist", "cifar10", "defaults", "paper"))
        yield pytest.param(name, marks=slow)


@pytest.mark.parametrize("suite", pages())
def test_the_page_in_docs_is_what_the_rows_say(suite):
    page = (ROOT / "docs" / f"results-{suite}.md").read_text(encoding="utf-8")
    root = ROOT / "results" / "bench"
    makers = {"toys": page_of_toys, "paper": page_of_paper}
    made = makers[suite](root) if suite in makers else page_of(suite, root)
    assert made == page, "run: python benchmarks/publish.py"


def test_sentences_of_several_profiles_stand_beside_those_of_one():
    why = captions_of("cifar10").why
    for method in ("dip-edl-default", "r-edl"):
        assert why("cpu", method, "accuracy") == why("gpu", method, "accuracy") is not None
    own = {why(profile, "mc-dropout", "accuracy") for profile in ("cpu", "gpu", "paper")}
    assert len(own) == 3 and None not in own
    assert why("paper", "dip-edl", "accuracy") is None


def test_what_is_there_and_what_is_not(tmp_path):
    spectra(tmp_path)
    page = page_of("spectra", tmp_path)
    assert "not yet run: cpu, gpu, published." in page and "## Receipts" in page
    assert "| EDL | 2 |" in page and "recall of Quasar" in page
    (left,) = (line for line in page.splitlines() if line.startswith("Not yet run: "))
    assert "PostNet" in left.partition("(seeds 10, 20, 30, 40)")[0]
    assert "EDL" in left.partition("(seeds 30, 40)")[0]
    assert "The collapse" not in page
    spectra(tmp_path, "published", ("edl", "dip-edl"))
    assert "As published, 0 of 2 methods lose a class in some seed; in the healthy" in (
        page_of("spectra", tmp_path)
    )
    assert "(0.7" not in page.partition("## Findings")[0]  # no number of the paper beside ours


def test_published_rows_and_diagnoses_make_the_page(tmp_path):
    store = spectra(tmp_path / "run", "published", ("edl", "dip-edl"))
    last = store.rows()[-1]
    store.append({**last, "metrics": {**last["metrics"], "recall_1": 0.0}, "config_hash": "new"})
    root = tmp_path / "published"
    found = publish.publish([tmp_path / "run", tmp_path / "none"], "spectra", root)
    assert found == {"scarce": 0, "cpu": 0, "gpu": 0, "published": 3}
    target = root / "spectra" / "published"
    diagnosed = json.loads((target / "diagnosis.json").read_text())
    assert diagnosed.keys() == {"edl", "dip-edl"}
    dead = {name: {"10": {"silent_classes": 2}} for name in diagnosed}
    (target / "diagnosis.json").write_text(json.dumps(dead))
    assert "by seed: EDL 2" in page_of("spectra", root)
    # rows whose arrays are gone: the diagnosis stays
    for file in store.folder.rglob("arrays/edl/**/*.npz"):
        file.unlink()
    publish.publish([tmp_path / "run"], "spectra", root)
    again = json.loads((target / "diagnosis.json").read_text())
    assert again == {**diagnosed, "edl": dead["edl"]}
    for file in store.folder.rglob("*.npz"):
        file.unlink()
    publish.publish([tmp_path / "run"], "spectra", root)
    assert json.loads((target / "diagnosis.json").read_text()) == again


def test_new_rows_join_what_is_published(tmp_path):
    file = Path("spectra", "scarce", "rows.jsonl")
    whole = spectra(tmp_path / "whole").rows_file.read_text()
    for i, line in enumerate(whole.splitlines(keepends=True)):
        (tmp_path / f"{i}" / file).parent.mkdir(parents=True)
        (tmp_path / f"{i}" / file).write_text(line)
        publish.publish([tmp_path / f"{i}"], "spectra", tmp_path / "to")
    assert whole.count("\n") > 2
    by_line = (tmp_path / "to" / file).read_text().splitlines()
    assert sorted(by_line) == sorted(whole.splitlines())


def test_sweeps_are_published_and_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(publish, "keep_trivial", lambda *_: None)  # needs the images
    write_synthetic_store(tmp_path / "run", profile="gpu")
    assert publish.publish([tmp_path / "run"], "mnist", tmp_path / "to")["gpu"] == 6
    kept = json.loads((tmp_path / "to/mnist/gpu/sweeps.json").read_text())
    assert kept["seeds"] == [10, 20] and set(kept["sweeps"]) == set(SWEEPS)
    page = page_of("mnist", tmp_path / "to")
    assert "| 3: n × density × classifier |" in page and "(0.5138)" in page
    # published again, no byte of it changes; a run that is computed anew is published anew
    files = {f: f.read_bytes() for f in (tmp_path / "to/mnist/gpu").iterdir() if f.is_file()}
    write_synthetic_store(tmp_path / "more", profile="gpu", methods=("edl",))
    for folder in ("to", "run", "more"):
        publish.publish([tmp_path / folder], "mnist", tmp_path / "to")
        for file, content in files.items():
            assert file.name == "rows.jsonl" or file.read_bytes() == content, (folder, file)
    (tmp_path / "to/mnist/gpu/sweeps.json").unlink()
    publish.publish([tmp_path / "more"], "mnist", tmp_path / "to")
    again = json.loads((tmp_path / "to/mnist/gpu/sweeps.json").read_text())
    assert again == kept
    # rows of another configuration do not keep the sweeps of this one
    rows = (tmp_path / "to/mnist/gpu/rows.jsonl").read_text()
    (tmp_path / "to/mnist/gpu/rows.jsonl").write_text(rows.replace(kept["hashes"][0], "0" * 12))
    other = tmp_path / "other"
    publish.publish([tmp_path / "to"], "mnist", other)
    assert not (other / "mnist/gpu/sweeps.json").exists()
    (tmp_path / "to/mnist/gpu/rows.jsonl").write_text(rows)
    run, there = (load_parts(Store(tmp_path / n, "mnist", "gpu")) for n in ("run", "to"))
    assert list(there) == [10, 20] and there[20].n == run[20].n
    for split, proba in run[20].proba.items():
        np.testing.assert_allclose(there[20].proba[split], proba, rtol=1e-5)
        np.testing.assert_allclose(there[20].z[split], run[20].z[split], rtol=1e-6)
    np.testing.assert_array_equal(there[20].y, run[20].y)


def test_a_dead_unit_is_seen_in_the_predictions():
    rng = np.random.default_rng(0)
    evidence = np.maximum(rng.normal(size=(200, 2)), 0)
    alive = 1 + evidence
    dead = alive.copy()
    dead[:, 1] = 1.0
    found = predictions(alive), predictions(dead)
    assert [of["silent_classes"] for of in found] == [0, 1]
    assert found[0]["no_evidence"] == pytest.approx((evidence == 0).all(axis=1).mean())
    assert found[1]["no_evidence"] == pytest.approx((evidence[:, 0] == 0).mean())
    assert sum(found[0]["said"]) == 200 and found[1]["said"] == [200, 0]
    relaxed = predictions(0.8 + (dead - 1), prior=0.8)
    assert relaxed["silent_classes"] == 1
    assert publish.diagnosis({"probabilities": np.eye(2)}, 1.0) == {"said": [1, 1]}


def predictions(alpha, prior=1.0):
    proba = alpha / alpha.sum(axis=1, keepdims=True)
    return publish.diagnosis({"probabilities": proba, "concentration": alpha}, prior)


def test_diagnoses_of_a_store_are_those_of_its_arrays(tmp_path):
    options = {"suite": "spectra", "ood": ["stars"], "classes": 2, "n_resamples": 0}
    store = write_synthetic_store(tmp_path, methods=["dip-edl", "edl"], **options)
    found = publish.diagnose_rows([store])
    assert found.keys() == {"dip-edl", "edl"} and found["edl"].keys() == {"10", "20"}
    assert sum(found["edl"]["10"]["said"]) == 50
    empty = write_synthetic_store(tmp_path / "rows", methods=["edl"], **options)
    for file in empty.folder.rglob("*.npz"):
        file.unlink()
    assert publish.diagnose_rows([empty]) == {}
