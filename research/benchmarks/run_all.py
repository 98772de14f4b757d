"""Run the measurements of minutes; those on full MNIST only where DIPEDL_DATA names its folder.

The others (scale, drift, flows, the service, spectra, peers) have commands of their own.
"""

import os
import subprocess
import sys

from harness import ROOT

MINUTES = """startup gaussian_scale default_speed neighbour_rows guarantee set_coverage
caution_budget head_speed load_speed install_size which_score""".split()
NEED_MNIST = ["covariance_forms", "select_density", "likelihood_failure"]
NAMES = [*MINUTES, *NEED_MNIST]


def main() -> None:
    for name in NAMES if "DIPEDL_DATA" in os.environ else MINUTES:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / f"{name}.py")], check=True)


if __name__ == "__main__":
    main()
