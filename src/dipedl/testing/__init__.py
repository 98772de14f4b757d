"""Public conformance checks of what plugs in: the contracts of `dipedl.protocols`, tested.

Every check is a function that raises AssertionError, with the thing under test and what it did
wrong, and else returns None; those of densities are in ``densities``, those of methods with an
uncertainty in ``baselines``.
"""

from .baselines import baseline_checks, check_baseline
from .densities import check_density, density_checks

__all__ = [
    "baseline_checks",
    "check_baseline",
    "check_density",
    "density_checks",
]
