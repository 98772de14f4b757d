"""A second of every fuzzer; `make fuzz` runs them for ten minutes."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
fuzz = import_module("run")

#: Tries of each, for about a second; 50 of any other.
TRIES = {"http_bodies": 60, "inputs": 120, "onnx_extremes": 100, "model_files": 150, "kills": 8,
         "pieces": 1, "forged_models": 3, "kept_parts": 20}  # fmt: skip


#: Fuzzers that fit models and make files for seconds before the first try.
LONG = ("forged_models", "http_bodies", "onnx_extremes", "pieces")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name in LONG), id=name)
        for name in fuzz.modules()
    ],
)
def test_nothing_that_must_not_occur_does(name):
    counts = import_module(name).run(0, TRIES.get(name, 50))
    assert fuzz.bad(counts) == {}
    assert sum(counts.values()) > 0


_DIGEST = """
import hashlib, json, sys, warnings
import numpy as np
sys.path.insert(0, sys.argv[1])
import forged_models
warnings.simplefilter("ignore")
rng, digest = np.random.default_rng(0), hashlib.sha256()
for number, (name, *_) in list(enumerate(forged_models.kinds()))[::25]:
    manifest, tensors = forged_models.honest(number)
    for made, arrays in ((manifest, tensors), forged_models.forged(rng, manifest, tensors)):
        digest.update(json.dumps([name, made, list(arrays)]).encode())
        digest.update(b"".join(array.tobytes() for array in arrays.values()))
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_one_seed_forges_the_same_files_in_every_process():
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _DIGEST, str(Path(__file__).parent)],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2")
    ]
    one, other = (process.communicate()[0] for process in processes)
    assert len(one) == 65 and one == other


def test_faults_are_found_by_their_names():
    counts = {"refused": 3, "wrong model": 1, "hang": 0, "fault: TypeError: x": 2, "traceback": 1}
    assert list(fuzz.bad(counts)) == ["wrong model", "fault: TypeError: x", "traceback"]


def test_a_fuzzer_that_dies_is_a_fault(tmp_path, monkeypatch):
    (tmp_path / "dies.py").write_text("import os\ndef run(seed, tries): os.abort()\n")
    script = tmp_path / "run.py"
    script.write_text(Path(fuzz.__file__).read_text("utf-8"), "utf-8")
    monkeypatch.setattr(fuzz, "__file__", str(script))
    result = fuzz.watched("dies", 7, 1.0)
    assert fuzz.bad(result["counts"]) == {"crash": 1} and result["end"].startswith("seed 7 ended")
