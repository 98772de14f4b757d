"""Write down what all models of `models.py` and the toys answer: ``python tests/golden/freeze.py``.

Only for a change of behaviour that is meant, and said in the CHANGELOG. The files under ``saved``
stay: version 0.1.0 wrote them, and later versions must say so.
"""

import json
from pathlib import Path

import numpy as np
from machine import kernels, one_thread, vendor, versions
from models import EXPORTED, MODELS, answers, graph_answers
from toys import small_rows

HERE = Path(__file__).parent
BEHAVIOUR, TOYS = HERE / "behaviour.npz", HERE / "toys.json"


def main():
    arrays = {"versions": versions(), "kernels": kernels(), "vendor": vendor()}
    for name, make in MODELS.items():
        model, X = make()
        found = answers(model, X)
        if name in EXPORTED:
            found |= {f"onnx/{key}": value for key, value in graph_answers(model, X).items()}
        arrays |= {f"{name}/{key}": value for key, value in found.items()}
    np.savez_compressed(BEHAVIOUR, **arrays)
    TOYS.write_text(json.dumps(small_rows(), indent=1) + "\n", encoding="utf-8")
    print(f"{BEHAVIOUR.name}: {len(arrays)} arrays, {BEHAVIOUR.stat().st_size} bytes")


if __name__ == "__main__":
    with one_thread():
        main()
