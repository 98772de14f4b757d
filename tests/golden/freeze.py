"""Write down what all models of `models.py` and the toys answer: ``python tests/golden/freeze.py``.

Only for a change of behaviour that is meant, and said in the CHANGELOG. The saved files stay as
they are unless ``--saved`` is given: older code wrote them, and that is their use.
"""

import json
import sys
from pathlib import Path

import numpy as np
from machine import kernels, one_thread, versions
from models import EXPORTED, MODELS, SAVED, answers, graph_answers
from toys import small_rows

import dipedl

HERE = Path(__file__).parent
BEHAVIOUR, FILES, TOYS = HERE / "behaviour.npz", HERE / "saved", HERE / "toys.json"


def main(saved):
    arrays = {"versions": versions(), "kernels": kernels()}
    for name, make in MODELS.items():
        model, X = make()
        found = answers(model, X)
        if name in SAVED and saved:
            keep(name, model, X, found)
        if name in EXPORTED:
            found |= {f"onnx/{key}": value for key, value in graph_answers(model, X).items()}
        arrays |= {f"{name}/{key}": value for key, value in found.items()}
    np.savez_compressed(BEHAVIOUR, **arrays)
    TOYS.write_text(json.dumps(small_rows(), indent=1) + "\n", encoding="utf-8")
    print(f"{BEHAVIOUR.name}: {len(arrays)} arrays, {BEHAVIOUR.stat().st_size} bytes")


def keep(name, model, X, found):
    """Save a model, and beside it what it answers."""
    path = FILES / f"{name}.dipedl"
    if hasattr(model, "save"):
        model.save(path)
    else:
        dipedl.save(model, path)
    np.savez_compressed(path.with_suffix(".npz"), **{"asked:X": np.asarray(X)}, **found)
    print(f"{path.name}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    with one_thread():
        main("--saved" in sys.argv[1:])
