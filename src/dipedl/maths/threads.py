"""Threads of BLAS and OpenMP where a task is too small for several."""

from __future__ import annotations

import math
import sys
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

#: With more features products are large enough for threads.
_FEW_FEATURES = 128
#: With more entries a classifier has enough to do for threads.
_FEW_ENTRIES = 1 << 17


def one_blas_thread(features: int) -> AbstractContextManager[object]:
    """BLAS on one thread around products of rows of few features.

    Waking a pool of threads takes longer than such a product, on a busy machine by far.
    """
    if features > _FEW_FEATURES:
        return nullcontext()
    limits: AbstractContextManager[object] = _blas().limit(limits=1)
    return limits


def one_thread_if_small(X: Any) -> AbstractContextManager[object]:
    """BLAS and OpenMP on one thread around a fit to few rows X (n, d), or answers to them.

    Threads of OpenMP wait for one another by spinning: where another process has the core, a fit of
    boosted trees to some hundred rows takes a hundred times as long. A number of threads that an
    estimator was given, as ``n_jobs`` of XGBoost, is kept.
    """
    if math.prod(X.shape) > _FEW_ENTRIES:
        return nullcontext()
    controller = _all_libraries(len(sys.modules))
    if all(library.num_threads == 1 for library in controller.lib_controllers):
        return nullcontext()
    limits: AbstractContextManager[object] = controller.limit(limits=1)
    return limits


@cache
def _blas() -> ThreadpoolController:
    # Once: to look through the libraries of the process takes milliseconds.
    return ThreadpoolController().select(user_api="blas")


@lru_cache(maxsize=1)
def _all_libraries(modules: int) -> ThreadpoolController:
    # Again when more modules were imported, which may have brought libraries of their own.
    return ThreadpoolController()
