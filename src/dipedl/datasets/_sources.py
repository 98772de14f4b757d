"""The published files that loaders need: addresses, checksums, licences."""

from __future__ import annotations

from dataclasses import dataclass

from ._dataset import Provenance


@dataclass(frozen=True)
class RemoteFile:
    """One published file.

    Parameters
    ----------
    urls : tuple of str
        Mirrors, tried in this order.
    md5 : tuple of str
        Published MD5s of the file; any one is accepted.
    sha256 : str or None, default=None
        Recorded from the file with the published MD5, and checked in its place.
    size : int or None, default=None
        Size in bytes, if known; it only makes messages clearer.
    """

    urls: tuple[str, ...]
    md5: tuple[str, ...]
    sha256: str | None = None
    size: int | None = None

    @property
    def checksums(self) -> tuple[str, ...]:
        """Accepted checksums, each ``"algorithm:hex"``; all of one algorithm."""
        if self.sha256 is not None:
            return (f"sha256:{self.sha256}",)
        return tuple(f"md5:{digest}" for digest in self.md5)


_MNIST_URLS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_KMNIST_URLS = (
    "https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
    "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
)
_OMNIGLOT_URLS = ("https://raw.githubusercontent.com/brendenlake/omniglot/master/python/",)


def _file(
    mirrors: tuple[str, ...],
    name: str,
    *md5: str,
    sha256: str | None = None,
    size: int | None = None,
) -> RemoteFile:
    return RemoteFile(tuple(mirror + name for mirror in mirrors), md5, sha256, size)


#: Path below a data directory -> the file that belongs there.
FILES: dict[str, RemoteFile] = {
    "mnist/train-images-idx3-ubyte.gz": _file(
        _MNIST_URLS,
        "train-images-idx3-ubyte.gz",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        sha256="440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        size=9_912_422,
    ),
    "mnist/train-labels-idx1-ubyte.gz": _file(
        _MNIST_URLS,
        "train-labels-idx1-ubyte.gz",
        "d53e105ee54ea40749a09fcbcd1e9432",
        sha256="3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        size=28_881,
    ),
    "mnist/t10k-images-idx3-ubyte.gz": _file(
        _MNIST_URLS,
        "t10k-images-idx3-ubyte.gz",
        "9fb629c4189551a2d022fa330f9573f3",
        sha256="8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        size=1_648_877,
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": _file(
        _MNIST_URLS,
        "t10k-labels-idx1-ubyte.gz",
        "ec29112dd5afa0611ce80d1b7f02629c",
        sha256="f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        size=4_542,
    ),
    "kmnist/train-images-idx3-ubyte.gz": _file(
        _KMNIST_URLS, "train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"
    ),
    "kmnist/train-labels-idx1-ubyte.gz": _file(
        _KMNIST_URLS, "train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"
    ),
    "kmnist/t10k-images-idx3-ubyte.gz": _file(
        _KMNIST_URLS,
        "t10k-images-idx3-ubyte.gz",
        "5c965bf0a639b31b8f53240b1b52f4d7",
        sha256="edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
        size=3_041_136,
    ),
    "kmnist/t10k-labels-idx1-ubyte.gz": _file(
        _KMNIST_URLS,
        "t10k-labels-idx1-ubyte.gz",
        "7320c461ea6c1c855c0b718fb2a4b134",
        sha256="20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c",
        size=5_120,
    ),
    # Two archives of the same drawings, the official one first; omniglot.py checks the images.
    "omniglot/images_evaluation.zip": _file(
        _OMNIGLOT_URLS,
        "images_evaluation.zip",
        "6b91aef0f799c5bb55b94e3f2daec811",
        "38b7d089f6fde29684a527400983af18",
    ),
}


def _provenance(name: str, folder: str, licence: str, notes: str = "") -> Provenance:
    files = {path: file for path, file in FILES.items() if path.startswith(f"{folder}/")}
    return Provenance(
        name,
        urls=tuple(url for file in files.values() for url in file.urls),
        checksums=tuple(f"{path} {c}" for path, file in files.items() for c in file.checksums),
        licence=licence,
        notes=notes,
    )


MNIST = _provenance(
    "MNIST (Y. LeCun, C. Cortes, C. J. C. Burges)", "mnist", "CC BY-SA 3.0, as commonly stated"
)
KMNIST = _provenance(
    '"KMNIST Dataset" (created by CODH), adapted from "Kuzushiji Dataset" '
    "(created by NIJL and others), doi:10.20676/00000341",
    "kmnist",
    "CC BY-SA 4.0",
)
OMNIGLOT = _provenance(
    "Omniglot, evaluation split (B. Lake)",
    "omniglot",
    "MIT, Copyright (c) 2015 Brenden Lake",
    "resized from 105 x 105 to 28 x 28 pixels (bilinear, antialiased)",
)
