"""Run the benchmarks of minutes; those on full data sets only where DIPEDL_DATA names their folder.

The others (of scale, drift, services, spectra, peers, training) have commands of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = (
    "startup",
    "gaussian_scale",
    "covariance_forms",
    "flow_speed",
    "default_speed",
    "neighbour_rows",
    "guarantee",
    "set_coverage",
    "caution_budget",
    "frozen_intervals",
    "head_speed",
    "load_speed",
    "install_size",
    "mnist_pixels",
    "select_density",
    "dip_edl_time",
    "likelihood_failure",
    "which_score",
)
NEED_MNIST = (
    "mnist_pixels",
    "select_density",
    "dip_edl_time",
    "likelihood_failure",
    "covariance_forms",
)


def main() -> None:
    for name in NAMES:
        if name in NEED_MNIST and "DIPEDL_DATA" not in os.environ:
            print(f"{name}: skipped, set DIPEDL_DATA first")
            continue
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True)


if __name__ == "__main__":
    main()
