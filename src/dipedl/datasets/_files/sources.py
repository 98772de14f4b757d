"""The published files that loaders need: addresses, checksums, licences."""

from __future__ import annotations

from .._dataset import Provenance
from .remote import RemoteFile
from .spectra_sources import SPECTRA_FILES

_MNIST_URLS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_KMNIST_URLS = (
    "https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
    "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
)
_FASHION_URLS = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
)
_CIFAR_URLS = ("https://www.cs.toronto.edu/~kriz/",)
_SVHN_URLS = ("http://ufldl.stanford.edu/housenumbers/",)
_OMNIGLOT_URLS = ("https://raw.githubusercontent.com/brendenlake/omniglot/master/python/",)


def _file(
    mirrors: tuple[str, ...],
    name: str,
    *md5: str,
    sha256: str | None = None,
    size: int | None = None,
) -> RemoteFile:
    return RemoteFile(tuple(mirror + name for mirror in mirrors), md5, sha256, size)


def _in_cifar(classes: int, name: str, md5: str, sha256: str | None, size: int) -> RemoteFile:
    folder = "cifar-10-batches-py" if classes == 10 else "cifar-100-python"
    archive = f"cifar{classes}/cifar-{classes}-python.tar.gz"
    return RemoteFile((), (md5,), sha256, size, archive, f"{folder}/{name}")


def _by_hand(md5: str, sha256: str, size: int) -> RemoteFile:
    return RemoteFile((), (md5,), sha256, size)


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
    # Two compressions of the same images each, the official one first, then that of Debian's
    # package dataset-fashion-mnist.
    "fashion_mnist/train-images-idx3-ubyte.gz": _file(
        _FASHION_URLS,
        "train-images-idx3-ubyte.gz",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "cf8536b0aa1a6ac5fa3f23001093305c",
    ),
    "fashion_mnist/train-labels-idx1-ubyte.gz": _file(
        _FASHION_URLS,
        "train-labels-idx1-ubyte.gz",
        "25c81989df183df01b3e8a0aad5dffbe",
        "10bea18fdb374794d4bb42e356e600c9",
    ),
    "fashion_mnist/t10k-images-idx3-ubyte.gz": _file(
        _FASHION_URLS,
        "t10k-images-idx3-ubyte.gz",
        "bef4ecab320f06d8554ea6380940ec79",
        "f78720b4224f21cce2f2ccf2d7a94c9a",
    ),
    "fashion_mnist/t10k-labels-idx1-ubyte.gz": _file(
        _FASHION_URLS,
        "t10k-labels-idx1-ubyte.gz",
        "bb300cfdad3c16e7a12a480ee83cd310",
        "0d30e22e447f3c33dab9ed536400ac01",
    ),
    "cifar10/cifar-10-python.tar.gz": _file(
        _CIFAR_URLS, "cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", size=170_498_071
    ),
    "cifar10/data_batch_1": _in_cifar(
        10,
        "data_batch_1",
        "c99cafc152244af753f735de768cd75f",
        "54636561a3ce25bd3e19253c6b0d8538147b0ae398331ac4a2d86c6d987368cd",
        31_035_704,
    ),
    "cifar10/data_batch_2": _in_cifar(
        10,
        "data_batch_2",
        "d4bba439e000b95fd0a9bffe97cbabec",
        "766b2cef9fbc745cf056b3152224f7cf77163b330ea9a15f9392beb8b89bc5a8",
        31_035_320,
    ),
    "cifar10/data_batch_3": _in_cifar(
        10,
        "data_batch_3",
        "54ebc095f3ab1f0389bbae665268c751",
        "0f00d98ebfb30b3ec0ad19f9756dc2630b89003e10525f5e148445e82aa6a1f9",
        31_035_999,
    ),
    "cifar10/data_batch_4": _in_cifar(
        10,
        "data_batch_4",
        "634d18415352ddfa80567beed471001a",
        "3f7bb240661948b8f4d53e36ec720d8306f5668bd0071dcb4e6c947f78e9682b",
        31_035_696,
    ),
    "cifar10/data_batch_5": _in_cifar(
        10,
        "data_batch_5",
        "482c414d41f54cd18b22e5b47cb7c3cb",
        "d91802434d8376bbaeeadf58a737e3a1b12ac839077e931237e0dcd43adcb154",
        31_035_623,
    ),
    "cifar10/test_batch": _in_cifar(
        10,
        "test_batch",
        "40351d587109b95175f43aff81a1287e",
        "f53d8d457504f7cff4ea9e021afcf0e0ad8e24a91f3fc42091b8adef61157831",
        31_035_526,
    ),
    "cifar100/cifar-100-python.tar.gz": _file(
        _CIFAR_URLS, "cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", size=169_001_437
    ),
    "cifar100/train": _in_cifar(
        100, "train", "16019d7e3df5f24257cddd939b257f8d", None, 155_249_918
    ),
    "cifar100/test": _in_cifar(
        100,
        "test",
        "f0ef6b0ae62326f3e7ffdfab6717acfc",
        "4b67687d9933c4db8f0831104447f15b93774f4f464bd0516f0f0f2ac83b7864",
        31_049_707,
    ),
    "cifar100/meta": _in_cifar(
        100,
        "meta",
        "7973b15100ade9c7d40fb424638fde48",
        "a5d4786345c961390f865e93b434dbd5c6904ce880667e0cb888c97d449f28b9",
        1_473,
    ),
    "svhn/test_32x32.mat": _file(
        _SVHN_URLS, "test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3", size=64_275_384
    ),
    "svhn/train_32x32.mat": _file(
        _SVHN_URLS, "train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373", size=182_040_794
    ),
    "gtsrb/gtsrb_test_32x32.webp": _by_hand(
        "93686f96db9de17d3456f77017c1ba38",
        "b836824ef5f2654cf502fe2e4adbad08d6db7fb31a67c283da7df6ae33db9f60",
        21_978_120,
    ),
    "gtsrb/labels.npy": _by_hand(
        "41a898dcba8a0559780c4872a4d7dda3",
        "63bcd301c5811ee33ca8e171b000205302ac3d04cc713c1588aa901e6fab6c94",
        12_758,
    ),
    "tabular/segment_id.csv": _by_hand(
        "69af7306841390ed71ceda30ea9943e9",
        "8ff90ad7a8a3753d51588bd48dff408a957da950adc26a008c32f59cb18f62af",
        639_089,
    ),
    "tabular/segment_ood_sky.csv": _by_hand(
        "a0492592e4c0e7b8ffd2ff5475697b1c",
        "58847735a2dc4dfd2951764f13e77ff25edf5967cc491208a53fb6de4780345b",
        107_300,
    ),
    "tabular/covtype_15k.npz": _by_hand(
        "eb773e505046818a3da145c7dba9e948",
        "372d8c4d1fb7b6b58d54fa656be61750fe770bf108727c573678126ff09f6f6b",
        270_614,
    ),
    # Two archives of the same drawings, the official one first; omniglot.py checks the images.
    "omniglot/images_evaluation.zip": _file(
        _OMNIGLOT_URLS,
        "images_evaluation.zip",
        "6b91aef0f799c5bb55b94e3f2daec811",
        "38b7d089f6fde29684a527400983af18",
    ),
    **SPECTRA_FILES,
}


def _provenance(name: str, prefix: str, licence: str, notes: str = "") -> Provenance:
    files = {path: file for path, file in FILES.items() if path.startswith(prefix)}
    return Provenance(
        name,
        urls=tuple(url for file in files.values() for url in file.urls),
        checksums=tuple(f"{path} {c}" for path, file in files.items() for c in file.checksums),
        licence=licence,
        notes=notes,
    )


MNIST = _provenance(
    "MNIST (Y. LeCun, C. Cortes, C. J. C. Burges)", "mnist/", "CC BY-SA 3.0, as commonly stated"
)
KMNIST = _provenance(
    '"KMNIST Dataset" (created by CODH), adapted from "Kuzushiji Dataset" '
    "(created by NIJL and others), doi:10.20676/00000341",
    "kmnist/",
    "CC BY-SA 4.0",
)
OMNIGLOT = _provenance(
    "Omniglot, evaluation split (B. Lake)",
    "omniglot/",
    "MIT, Copyright (c) 2015 Brenden Lake",
    "resized from 105 x 105 to 28 x 28 pixels (bilinear, antialiased)",
)
FASHION_MNIST = _provenance(
    "Fashion-MNIST (H. Xiao, K. Rasul, R. Vollgraf; Zalando)", "fashion_mnist/", "MIT"
)
CIFAR10 = _provenance("CIFAR-10 (A. Krizhevsky, V. Nair, G. Hinton)", "cifar10/", "not stated")
CIFAR100 = _provenance("CIFAR-100 (A. Krizhevsky, V. Nair, G. Hinton)", "cifar100/", "not stated")
SVHN = _provenance(
    "SVHN, cropped digits (Y. Netzer, T. Wang, A. Coates, A. Bissacco, B. Wu, A. Y. Ng)",
    "svhn/",
    "for non-commercial use only",
)
GTSRB = _provenance(
    "GTSRB (third-party 32x32 resize)",
    "gtsrb/",
    "not stated",
    "test images of the German Traffic Sign Recognition Benchmark (J. Stallkamp, M. Schlipsing, "
    "J. Salmen, C. Igel), resized by a third party; no official mirror has this form",
)
SEGMENT = _provenance(
    "Image Segmentation (Vision Group, University of Massachusetts; UCI)",
    "tabular/segment",
    "CC BY 4.0",
    "as PostNet used it: each input scaled to [0, 1] over all rows of the six known classes, "
    "before any split; the class sky left out",
)
COVERTYPE = _provenance(
    "Covertype (J. Blackard; Colorado State University; UCI)",
    "tabular/covtype",
    "CC BY 4.0",
    "15,120 rows, 2,160 of each class",
)
