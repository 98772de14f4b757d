"""Threads of matrix products, limited where they cost more than they give."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

#: With more features products are large enough for threads.
_FEW_FEATURES = 128


def one_blas_thread(features: int) -> AbstractContextManager[object]:
    """BLAS on one thread around products of rows of few features.

    Waking a pool of threads takes longer than such a product, on a busy machine by far.
    """
    if features > _FEW_FEATURES:
        return nullcontext()
    limits: AbstractContextManager[object] = _blas().limit(limits=1)
    return limits


@cache
def _blas() -> ThreadpoolController:
    # Once: to look through the libraries of the process takes milliseconds.
    return ThreadpoolController().select(user_api="blas")
