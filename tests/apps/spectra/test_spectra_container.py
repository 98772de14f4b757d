import numpy as np
import pytest

from dipedl.apps.spectra import Failure, Spectra


def three():
    return Spectra(
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.array([1.0, 2.0, 3.0, 4.0]),
        label=np.array([2, 0, 1]),
        target_names=("a", "b", "c"),
        snr=np.array([1.0, np.nan, 3.0]),
        mask=np.eye(3, 4, dtype=bool),
        failures=(Failure("x.fits", 7, "it is constant"),),
    )


def test_rows_stay_together():
    some = three().select([2, 0])
    np.testing.assert_array_equal(some.flux, np.arange(12).reshape(3, 4)[[2, 0]])
    np.testing.assert_array_equal(some.label, [1, 2])
    np.testing.assert_array_equal(some.mask, np.eye(3, 4)[[2, 0]])
    assert some.redshift is None and len(some) == 2
    assert str(some.failures[0]) == "x.fits, row 7: it is constant"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flux": np.zeros((3, 4))}, "flux must be a float32 array"),
        ({"wavelength": np.array([1.0, 3.0, 2.0, 4.0])}, "wavelength must be increasing"),
        ({"snr": np.zeros(2)}, r"snr must have shape \(3,\), got \(2,\)"),
        ({"ivar": np.zeros(3, np.float32)}, r"ivar must have shape \(3, 4\)"),
        ({"label": np.array([0, 1, 3])}, "label must hold indices 0..2"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    given = {name: getattr(three(), name) for name in three().__dataclass_fields__}
    with pytest.raises((TypeError, ValueError), match=message):
        Spectra(**{**given, **change})
