"""Forged model files with good checksums, each loaded and asked in a child process.

A forgery changes some values, arrays, names or texts of an honest file. Loading it must raise
`ModelFileError`, or give a model that answers in the shape it should, or raises: never a crash,
never more than 5 seconds or 10 times the size of the file in memory.

A forgery within bounds, such as another threshold of a tree, is another valid model: only who
keeps the file's SHA-256 elsewhere can see that. Numbers of an estimator of another package that
give NaN are answered as unknown: its probabilities are asked for as every model of ours does.

    python tests/fuzz/forged_models.py [seed] [tries] [own]
"""

import copy
import json
import os
import pickle
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.base import clone

from dipedl.inputs import FittedClassifier
from dipedl.io import ModelFileError, load, save
from dipedl.io.container import read, write

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
BAD = ("crash", "hang", "memory", "fault", "wrong")

#: Tries in one call of `run` where others have fewer: the honest files are made first.
BATCH = 500
MOST_SECONDS, MOST_GROWTH = 5.0, 10
#: Files are small: what one prediction takes beside the model.
SLACK = 32 << 20
#: The child process is given this much.
ADDRESS_SPACE = 6 << 30
#: How often what is repeated comes, and the largest array that is, in bytes: an answer by distances
#: to very many rows takes memory that no file names.
TIMES, MOST_REPEATED = 1000, 1 << 12
NUMBERS = [0, 1, -1, -2, 2, 3, 7, 255, 256, 10**4, 10**8, 2**31 - 1, 2**31, -(2**31), 2**62, 2**64]
VALUES = [*NUMBERS, 1e308, -1e308, 1e-320, 0.5, -0.0, None, True, False, "", "x", "euclidean"]
VALUES += [
    "minkowski",
    "mahalanobis",
    "precomputed",
    "kd_tree",
    [],
    {},
    [0],
    [[]],
    {"$float": "nan"},
]
VALUES += [{"$float": "inf"}, {"$tuple": []}, {"$object": 0}, {"$small": 0}, {"$part": 0}]
WORDS = ["-1", "99999999", "2147483648", "nan", "inf", "1e400", "", "0", "7", "-2147483649"]
SHAPES = [[0], [1], [3], [2, 2], [0, 4], [150, 4], [10**9], [2**62, 2], []]
DTYPES = ["<f8", "<f4", "<i8", "<i4", "|u1", "<u4", "|b1", "<U1", ">f8", "|S3"]
METHODS = ("predict_proba", "decision_function", "predict", "transform", "score_samples", "apply")


@cache
def kinds():
    """Of every kind of model: its name, a function that saves a fitted one, and inputs."""
    import _networks

    from own_models import models
    from table_estimators import estimators, fitted

    def saves(fit, *given):
        return lambda path: save(fit(*given), path)

    def fit(model, rows, labels):
        return clone(model).fit(rows, labels)

    found = [(name, saves(fitted, *given), given[1]) for name, given in estimators().items()]
    found += [(f"own {name}", saves(fit, *given), given[1]) for name, given in models().items()]
    return found + _networks.kinds()


@cache
def honest(number):
    """Manifest and tensors of a saved model of that kind."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "honest.dipedl"
        kinds()[number][1](path)
        manifest, tensors = read(path)
    # safetensors gives arrays in the order of a hash that differs from run to run.
    return manifest, dict(sorted(tensors.items()))


def forged(rng, manifest, tensors):
    """A copy with one to four changes."""
    manifest = copy.deepcopy(manifest)
    tensors = {name: array.copy() for name, array in tensors.items()}
    for _ in range(rng.choice([1, 2, 4], p=[0.6, 0.2, 0.2])):
        kinds = [_value, _value, _small, _name, _swap, _object, _repeat]
        if tensors:
            kinds += [_tensor, _tensor, _tensor]
        # Another change may have left nothing that this one could change.
        with suppress(ValueError, TypeError, OverflowError, LookupError, AttributeError):
            kinds[rng.integers(len(kinds))](rng, manifest, tensors)
    return manifest, tensors


def _places(node, found):
    """Every place of a JSON value: its container and key."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, child in list(items):
        found.append((node, key))
        if isinstance(child, dict | list):
            _places(child, found)
    return found


def _any_place(rng, manifest):
    parts = [manifest[name] for name in ("objects", "settings", "state") if name in manifest]
    places = _places(parts, [])[len(parts) :]
    return places[rng.integers(len(places))]


def _value(rng, manifest, tensors):
    node, key = _any_place(rng, manifest)
    if rng.random() < 0.1 and isinstance(node, dict):
        del node[key]
    elif isinstance(node[key], int | float) and rng.random() < 0.4:
        node[key] = node[key] + int(rng.integers(-3, 4))
    else:
        node[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


def _name(rng, manifest, tensors):
    entry = manifest["objects"][rng.integers(len(manifest["objects"]))]
    other = manifest["objects"][rng.integers(len(manifest["objects"]))]
    if rng.random() < 0.5:
        entry["type"] = other["type"]
    elif entry["state"]:
        name = list(entry["state"])[rng.integers(len(entry["state"]))]
        entry["state"][f"{name}_"] = entry["state"].pop(name)


def _swap(rng, manifest, tensors):
    """Two values change places."""
    (a, i), (b, j) = _any_place(rng, manifest), _any_place(rng, manifest)
    try:
        a[i], b[j] = copy.deepcopy(b[j]), copy.deepcopy(a[i])
    except (KeyError, IndexError):
        return


def _object(rng, manifest, tensors):
    """One object is in the place of another."""
    places = [(node, key) for node, key in _places(manifest["objects"], []) if key == "$object"]
    node, key = places[rng.integers(len(places))]
    node[key] = int(rng.integers(len(manifest["objects"])))


def _repeat(rng, manifest, tensors):
    """An item of a list, or all of an array, comes a thousand times."""
    places = _places(manifest["objects"], [])
    lists = [node[key] for node, key in places if isinstance(node[key], list) and node[key]]
    if lists and rng.random() < 0.7:
        items = lists[rng.integers(len(lists))]
        at = rng.integers(len(items))
        items[at:at] = [copy.deepcopy(items[at]) for _ in range(TIMES)]
    else:
        name = list(tensors)[rng.integers(len(tensors))]
        if tensors[name].nbytes <= MOST_REPEATED:
            tensors[name] = np.repeat(tensors[name], TIMES, axis=0)


def _small(rng, manifest, tensors):
    if not manifest["small"]:
        return
    entry = manifest["small"][rng.integers(len(manifest["small"]))]
    kind = rng.integers(4)
    if kind == 0:
        entry[0] = DTYPES[rng.integers(len(DTYPES))]
    elif kind == 1:
        entry[1] = SHAPES[rng.integers(len(SHAPES))]
    elif kind == 2:
        entry[2] = "F" if entry[2] == "C" else "C"
    else:
        dtype = np.dtype(entry[0])
        array = _changed(rng, np.frombuffer(bytes.fromhex(entry[3]), dtype).reshape(entry[1]))
        entry[:] = [array.dtype.str, list(array.shape), "C", array.tobytes().hex()]


def _tensor(rng, manifest, tensors):
    name = list(tensors)[rng.integers(len(tensors))]
    if name in manifest.get("state", {}):
        import_module("_networks").change(
            manifest["state"], name, tensors, lambda a: _changed(rng, a)
        )
    elif name.endswith((".text", ".json")):
        tensors[name] = _text(rng, tensors[name])
    else:
        tensors[name] = np.ascontiguousarray(_changed(rng, tensors[name]))


def _changed(rng, array):
    """The array with other entries, another length, type or shape."""
    with np.errstate(all="ignore"):
        return _changed_in(rng, array, rng.integers(8))


def _changed_in(rng, array, kind):
    if kind == 0 and array.ndim:
        return array[: max(0, len(array) - int(rng.integers(1, 4)))]
    if kind == 1 and array.ndim and len(array):
        return np.concatenate([array, array[: int(rng.integers(1, 4))]])
    if kind == 2 and array.dtype.kind in "iufb":
        return array.astype([np.float64, np.float32, np.int64, np.int32, np.uint8][rng.integers(5)])
    if kind == 3:
        return array.reshape(-1)[::-1].reshape(array.shape)
    array = array.copy()
    flat = array.reshape(-1)
    if not flat.size:
        return (
            np.concatenate([flat, np.ones(3, flat.dtype)]) if flat.dtype.kind in "iufb" else array
        )
    at = rng.integers(flat.size, size=int(rng.integers(1, 4)))
    if flat.dtype.kind in "iu":
        near = flat[at].astype(object) + int(rng.integers(-2, 3))
        bad = near if rng.random() < 0.5 else NUMBERS[rng.integers(len(NUMBERS))]
        info = np.iinfo(flat.dtype)
        bad = np.atleast_1d(np.array(bad, object))
        flat[at] = np.clip(bad, info.min, info.max).astype(flat.dtype)
    elif flat.dtype.kind == "f":
        flat[at] = [np.nan, np.inf, -1.0, 0.0, 1e308, -1e308, 1e8, 0.5][rng.integers(8)]
    elif flat.dtype.kind == "b":
        flat[at] = ~flat[at]
    return array


def _text(rng, array):
    """Another number, line or letter in the text of a native model."""
    data = array.tobytes()
    kind = rng.integers(4)
    numbers = list(re.finditer(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", data))
    if kind < 2:
        at = numbers[rng.integers(len(numbers))]
        data = data[: at.start()] + WORDS[rng.integers(len(WORDS))].encode() + data[at.end() :]
    elif kind == 2:
        split = b"\n" if b"\n" in data else b","
        lines = data.split(split)
        i, j = rng.integers(len(lines), size=2)
        lines[i] = lines[j] if rng.random() < 0.5 else b""
        data = split.join(lines)
    else:
        flipped = bytearray(data)
        flipped[rng.integers(len(flipped))] = int(rng.integers(32, 127))
        data = bytes(flipped)
    # tree_sizes must be right, or LightGBM's own check would stop nearly every try.
    starts = [m.start() + 1 for m in re.finditer(rb"\nTree=", data)]
    if starts and b"\nend of trees" in data and rng.random() < 0.9:
        ends = [*starts[1:], data.index(b"\nend of trees") + 1]
        sizes = b" ".join(str(e - s).encode() for s, e in zip(starts, ends, strict=True))
        data = re.sub(rb"tree_sizes=.*", b"tree_sizes=" + sizes, data)
    return np.frombuffer(data, np.uint8)


class Child:
    """A process that loads files and says how that went; made again after a crash."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.start()

    def start(self):
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--child", self.inputs],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self.process.stdout.readline()  # its imports count for no file

    def ask(self, number, path):
        """Return the outcome, one word, and what was said."""
        try:
            self.process.stdin.write(f"{number} {path}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        began, used = time.monotonic(), self.seconds()
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], MOST_SECONDS)
            if ready:
                line = self.process.stdout.readline()
                if line:
                    return json.loads(line)
                code = self.process.wait()
                self.start()
                name = signal.Signals(-code).name if code < 0 else f"exit {code}"
                return ["crash", name]
            # The machine may be busy: the seconds of this process count.
            if self.seconds() - used > MOST_SECONDS or time.monotonic() - began > 120:
                self.close()
                self.start()
                return ["hang", f"more than {MOST_SECONDS} s"]

    def seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.kill()
        self.process.wait()


def run(seed, tries, word=""):
    """Counts by outcome, of the kinds whose name begins with the word.

    With the variable FORGED, the bad files go to that folder.
    """
    rng, counts = np.random.default_rng(seed), Counter()
    every, asked = kinds(), [i for i, kind in enumerate(kinds()) if kind[0].startswith(word)]
    with tempfile.TemporaryDirectory() as folder:
        inputs, path = Path(folder) / "inputs.pickle", Path(folder) / "forged.dipedl"
        inputs.write_bytes(pickle.dumps([(name, rows) for name, _, rows in every]))
        child = Child(str(inputs))
        for i in range(tries):
            number = asked[rng.integers(len(asked))]
            name = every[number][0]
            write(path, *forged(rng, *honest(number)))
            word, said = child.ask(number, path)
            counts[word] += 1
            if word in BAD:
                print(f"seed {seed}, try {i}, {name}: {word}, {said}", file=sys.stderr, flush=True)
                if "FORGED" in os.environ:
                    kept = Path(os.environ["FORGED"]) / f"{seed}_{i}.dipedl"
                    kept.write_bytes(path.read_bytes())
        child.close()
    return dict(counts)


def serve(inputs):
    """Load each file named on stdin, ask the model, and write one line of JSON about it."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    every = pickle.loads(Path(inputs).read_bytes())
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # Every package is loaded before memory is counted.
    for name in ("table_estimators", "own_models", "_networks"):
        import_module(name)
    answer.write("ready\n")
    for line in sys.stdin:
        number, path = line.rstrip("\n").split(" ", 1)
        Path("/proc/self/clear_refs").write_text("5")
        before = _memory("VmRSS")
        outcome = _outcome(path, *every[int(number)])
        grown, size = _memory("VmHWM") - before, os.path.getsize(path)
        if grown > MOST_GROWTH * size + SLACK and outcome[0] not in ("wrong", "fault"):
            outcome = ["memory", f"{grown >> 20} MiB for {size} bytes: {outcome}"]
        answer.write(json.dumps(outcome) + "\n")


def _memory(name):
    line = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(line[1]) << 10


def _outcome(path, name, inputs):
    ours = name.startswith("own")
    try:
        network = name.startswith("own DIPModule")
        model = import_module("_networks").load(path) if network else load(path)
    except ModelFileError as error:
        cause = error.__cause__
        if isinstance(cause, MemoryError):
            return ["memory", str(error)[:200]]
        return ["refused", ""]
    except Exception as error:
        return ["fault", f"{type(error).__name__}: {error}"[:200]]
    try:
        return _checked_answers(model, inputs)
    except MemoryError as error:
        return ["memory", str(error)[:200]]
    except Exception as error:
        raw = ours and not isinstance(error, ValueError | ImportError) and not _is_of_others(error)
        return ["fault" if raw else "error in an answer", f"{type(error).__name__}: {error}"[:200]]


def _is_of_others(error):
    """Return whether the estimator of another package inside a model raised this error."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    ours = max((i for i, file in enumerate(files) if "dipedl" in file), default=0)
    return any("sklearn" in file for file in files[ours:])


def _checked_answers(model, inputs):
    rows = inputs.shape[0] if hasattr(inputs, "shape") else len(inputs)
    if hasattr(model, "predict_dirichlet") and (fault := _doubt(model, inputs)):
        return fault
    for method in METHODS:
        if not hasattr(model, method) or (method == "apply" and hasattr(model, "network")):
            continue
        said = getattr(model, method)(inputs)
        given = said.shape[0] if hasattr(said, "shape") else len(said)
        if given != rows:
            return ["wrong", f"{method} gives {given} rows for {rows}"]
        if method == "predict_proba" and (fault := _fault(model, inputs)):
            return fault
    return ["answered", ""]


def _doubt(model, inputs):
    """Return the fault of a Dirichlet and of decisions by it, or None."""
    found = model.predict_dirichlet(inputs)
    vacuity, alpha = np.asarray(found.vacuity), np.asarray(found.concentration)
    if not (np.isfinite(alpha).all() and (alpha > 0).all()):
        return ["wrong", f"concentrations {alpha[:1].tolist()}"]
    if not ((vacuity >= 0) & (vacuity <= 1)).all():
        return ["wrong", f"vacuities {vacuity[:1].tolist()}"]
    p = np.asarray(model.p_value(inputs))
    if not ((p > 0) & (p <= 1)).all():
        return ["wrong", f"p-values {p[:1].tolist()}"]
    if not np.isin(np.asarray(model.predict_ood(inputs)), [-1, 1]).all():
        return ["wrong", "flags that are none"]
    some = inputs[:3]
    model.explain(some), model.predict_set(some, 0.9), model.diagnose().to_dict()
    return None


def _fault(model, inputs):
    """Return the fault of probabilities that are not answered as unknown, or None."""
    inputs = np.array(inputs, object) if isinstance(inputs, list) else inputs
    P, unknown = FittedClassifier(model, model.classes_).proba_or_none(inputs)
    if ((P >= 0) & (P <= 1)).all() and np.allclose(P.sum(axis=1), 1, atol=1e-6):
        return None
    return ["wrong", f"probabilities of {type(model).__name__}: {P[~unknown][:1].tolist()}"]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        serve(sys.argv[2])
    else:
        given = dict(enumerate(sys.argv))
        seed, tries = int(given.get(1, 0)), int(given.get(2, 2000))
        print(json.dumps(run(seed, tries, given.get(3, ""))))
