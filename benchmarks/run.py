"""Run every benchmark; the one on full MNIST only where DIPEDL_DATA says where the files lie."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ("startup", "gda_speed", "install_size", "mnist_pixels")


def main() -> None:
    for name in NAMES:
        if name == "mnist_pixels" and "DIPEDL_DATA" not in os.environ:
            print("mnist_pixels: skipped, set DIPEDL_DATA first")
            continue
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True)


if __name__ == "__main__":
    main()
