"""Draw the bundled mini set from the full data sets.

    python scripts/make_mini.py DATA_DIR

DATA_DIR holds mnist/, kmnist/ and omniglot/ with the official file names. The same seed and the
same files give the same arrays; the printed SHA-256 belongs into
src/dipedl/datasets/mini_mnist.py.
"""

import os
import sys
import zipfile
from pathlib import Path

import numpy as np

from dipedl.datasets import mini_mnist
from dipedl_bench.datasets.images import read_part

SEED = 20260101
N_TRAIN, N_TEST, N_OOD = 1500, 500, 200


def stratified(labels, n, rng):
    """Sorted indices of n rows, the same number from each class."""
    classes = np.unique(labels)
    share = n // len(classes)
    rows = [rng.choice(np.flatnonzero(labels == c), share, replace=False) for c in classes]
    return np.sort(np.concatenate(rows))


def select():
    """Images (n, 28, 28) and labels (n,), by name."""
    rng = np.random.default_rng(SEED)
    arrays = {}
    for part, n in (("train", N_TRAIN), ("test", N_TEST)):
        images, labels, *_ = read_part("mnist", part)
        rows = stratified(labels, n, rng)
        arrays[f"X_{part}"], arrays[f"y_{part}"] = images[rows], labels[rows].astype(np.uint8)
    images, labels, *_ = read_part("kmnist", "test")
    arrays["kmnist"] = images[stratified(labels, N_OOD, rng)]
    # drawn from all: 659 characters are too many to take the same number of each
    images = read_part("omniglot", "test").images
    arrays["omniglot"] = images[np.sort(rng.choice(len(images), N_OOD, replace=False))]
    return arrays


def main(data_dir, target=mini_mnist.FILE):
    os.environ["DIPEDL_DATA"] = str(data_dir)
    arrays = select()
    # as np.savez_compressed, which packs at level 6: 12 kB more
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array, allow_pickle=False)
    print(f"{target}: {Path(target).stat().st_size:,} bytes")
    print(f"SHA-256 of the arrays: {mini_mnist.fingerprint(arrays)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(sys.argv[1])
