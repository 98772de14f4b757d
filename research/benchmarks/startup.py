"""Import time and time to the first result, in fresh processes, beside the bare interpreter."""

import subprocess
import sys

import harness
from harness import median_seconds

_SNIPPETS = {
    "python": "pass",
    "import_dipedl": "import dipedl",
    "import_classifier": "from dipedl import DIPClassifier",
    "import_sklearn_base": "import sklearn.base",
    "first_result_moons": (
        "from dipedl import DIPClassifier, datasets; d = datasets.load_moons();"
        "clf = DIPClassifier().fit(d.X_train, d.y_train);"
        "clf.predict_proba(d.X_test); clf.uncertainty(d.X_test); clf.predict_ood(d.ood['far'])"
    ),
    "first_result_digits": (
        "from dipedl import DIPClassifier, datasets; d = datasets.load_digits();"
        "clf = DIPClassifier().fit(d.X_train, d.y_train);"
        "clf.predict_proba(d.X_test); clf.uncertainty(d.X_test); clf.predict_ood(d.ood['held_out'])"
    ),
}


def measure() -> harness.Values:
    medians = {
        name: median_seconds(
            lambda code=code: subprocess.run([sys.executable, "-c", code], check=True)
        )
        for name, code in _SNIPPETS.items()
    }
    values = {f"{name}_s": round(s, 3) for name, s in medians.items()}
    values["import_dipedl_beyond_python_ms"] = round(
        1000 * (medians["import_dipedl"] - medians["python"]), 1
    )
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
