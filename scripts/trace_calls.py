"""Count how far one call travels through the package: ``python scripts/trace_calls.py``.

A *hop* is a call from a function in one file of `dipedl` to a function in another. Each call event
of `sys.setprofile` whose code lies in the package is compared with the innermost function of the
package that is still running: code of other packages between the two (scikit-learn that calls back,
a generator that joblib drives) is looked through, returns do not count. Properties, lambdas and
comprehensions are functions as Python 3.11 runs them (3.12 makes most comprehensions part of their
function, and counts less); imports are no calls, and everything is run once before it is traced.
*Files* are those in which a function ran, *depth* is how many of them run at a time at most.

``--paths`` also prints the hops in order, repeated ones once; ``--json`` prints the figures alone.
"""

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from sklearn.datasets import load_digits, load_iris

import dipedl

ROOT = str(Path(dipedl.__file__).parent) + "/"


class Trace:
    """The hops of one call, as (caller, callee) by file and function."""

    def __init__(self, call: Callable[[], object]):
        self.hops, self.files, self.depth, self.running = [], set(), 0, []
        sys.setprofile(self.event)
        try:
            call()
        finally:
            sys.setprofile(None)

    def event(self, frame, event, argument):
        """Take one event of `sys.setprofile`."""
        code = frame.f_code
        if not code.co_filename.startswith(ROOT) or code.co_name == "<module>":
            return
        if event == "return" and self.running:
            self.running.pop()
        elif event == "call":
            here = code.co_filename.removeprefix(ROOT), code.co_name
            if self.running and self.running[-1][0] != here[0]:
                self.hops.append((self.running[-1], here))
            self.files.add(here[0])
            self.running.append(here)
            self.depth = max(self.depth, len(self.running))

    def figures(self):
        """The row of the table."""
        return {"hops": len(self.hops), "files": len(self.files), "depth": self.depth}

    def paths(self):
        """The hops in order, as lines."""
        for (caller, callee), times in groupby(self.hops):
            yield f"{':'.join(caller)} -> {':'.join(callee)}  x {len(list(times))}"


def traces():
    iris, digits = load_iris(return_X_y=True), load_digits(return_X_y=True)
    some = digits[0][:400], digits[1][:400]
    models = {
        "iris: paper()": (dipedl.DIPClassifier.paper, iris),
        "iris: default": (dipedl.DIPClassifier, iris),  # chooses one density
        "digits: default": (dipedl.DIPClassifier, some),  # fuses six and the classifier
    }
    found = {}
    for name, (make, data) in models.items():
        fitted = make().fit(*data)  # imports what is imported on first use
        fitted.predict_proba(data[0])
        found[f"{name} fit"] = Trace(lambda make=make, data=data: make().fit(*data))
        found[f"{name} predict_proba"] = Trace(lambda m=fitted, X=data[0]: m.predict_proba(X))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--paths", action="store_true", help="print every hop")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    with warnings.catch_warnings(action="ignore"):
        found = traces()
    if arguments.json:
        return print(json.dumps({name: trace.figures() for name, trace in found.items()}, indent=1))
    print(f"{'':<32}{'hops':>7}{'files':>7}{'depth':>7}")
    for name, trace in found.items():
        print(f"{name:<32}" + "".join(f"{number:>7}" for number in trace.figures().values()))
        if arguments.paths:
            print("\n".join(f"    {line}" for line in trace.paths()))


if __name__ == "__main__":
    main()
