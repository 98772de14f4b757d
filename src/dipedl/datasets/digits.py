"""scikit-learn's 8 x 8 digits with some classes held out."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .dataset import Dataset, Provenance, split_stratified

__all__ = ["load_digits"]

_CLASSES = range(10)


def load_digits(
    *, ood_classes: Iterable[int] = (8, 9), test_size: float = 0.3, random_state: int = 0
) -> Dataset:
    """scikit-learn's handwritten digits, 8 x 8 pixels; held-out classes are the OOD set.

    The default trains on 0 to 7 and holds out 8 and 9, a near and hard OOD set.

    Parameters
    ----------
    ood_classes : iterable of int, default=(8, 9)
        Digits held out as OOD. At least two others must remain.
    test_size : float, default=0.3
        Share of the remaining 1,797 or fewer images that goes into the test set, in (0, 1);
        stratified.
    random_state : int, default=0
        Seed of the split; the same seed gives the same split.

    Returns
    -------
    Dataset
        Inputs (n, 64), float32 in [0, 1] (grey level / 16); labels (n,), int64, numbered 0..k-1 in
        order of the remaining digits, which are the `target_names`; ``ood["held_out"]``;
        ``image_shape=(8, 8)``.

    Raises
    ------
    ValueError
        If `ood_classes` is empty, is not made of digits, or leaves fewer than two; if `test_size`
        is not in (0, 1) or leaves a class without images.

    Examples
    --------
    >>> from dipedl.datasets import load_digits
    >>> load_digits()
    Dataset('digits', X_train=(1010, 64), X_test=(433, 64), n_classes=8, ood={'held_out': 354})
    """
    from sklearn.datasets import load_digits as load_bunch

    out = set(ood_classes)
    classes = [digit for digit in _CLASSES if digit not in out]
    if not out or not out <= set(_CLASSES) or len(classes) < 2:
        raise ValueError(
            f"ood_classes must be 1 to 8 of the digits 0..9, got {sorted(out, key=str)}; "
            "the default holds out (8, 9)"
        )
    X, digit = load_bunch(return_X_y=True)
    X = (X / 16).astype(np.float32)
    known = np.isin(digit, classes)
    y = np.searchsorted(classes, digit[known]).astype(np.int64)
    train, test = split_stratified(X[known], y, test_size, random_state)
    return Dataset(
        "digits",
        *train,
        *test,
        ood={"held_out": X[~known]},
        target_names=tuple(str(digit) for digit in classes),
        image_shape=(8, 8),
        provenance=(
            Provenance(
                "Optical Recognition of Handwritten Digits, test part (E. Alpaydin, C. Kaynak; "
                "UCI), as shipped with scikit-learn",
                urls=("https://archive.ics.uci.edu/dataset/80",),
                licence="CC BY 4.0",
            ),
        ),
    )
