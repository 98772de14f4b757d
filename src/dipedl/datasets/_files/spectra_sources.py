"""Files of spectra: checksums, sources, licences. No mirror has them in this form."""

from __future__ import annotations

from .._dataset import Provenance
from .remote import RemoteFile

INGREDIENTS = "spectra/sim_ingredients.npz"
OBSERVED = "spectra/real_spectra.npz"
SUPERNOVAE_FILE = "spectra/ood_supernovae.npz"

#: Path below a data directory -> the file that belongs there.
SPECTRA_FILES: dict[str, RemoteFile] = {
    INGREDIENTS: RemoteFile(
        (),
        ("d89d8c2d80a7520a2d58b619ea2e6e1b",),
        "278f77b817da97aed273ec261d54f2ba05f32b1bb38534c3434c460d0e11bcba",
        3_782_386,
    ),
    OBSERVED: RemoteFile(
        (),
        ("7518e0ca5d30c7c107b02b739170dfb7",),
        "957ed946dc7e9a5f5b7191ca3a5920ede18e5c401fcd1975f5e5a2c8f2858eb6",
        20_440_448,
    ),
    SUPERNOVAE_FILE: RemoteFile(
        (),
        ("41353fb1d041c458eeedb0e1cfc94456",),
        "49774187e855b67a14e91c0fa424ad1e443ed044f5e638e7e50049612b4be304",
        3_530_203,
    ),
}


def _provenance(name: str, path: str, licence: str, notes: str) -> Provenance:
    checksums = tuple(f"{path} {c}" for c in SPECTRA_FILES[path].checksums)
    return Provenance(name, checksums=checksums, licence=licence, notes=notes)


SEMI_REAL = _provenance(
    "SEMI-REAL spectra: generated, not observed",
    INGREDIENTS,
    "SDSS and LAMOST early releases: public, with acknowledgement; GaSNet-III eigenspectra: MIT; "
    "redrock stellar templates: BSD-3",
    "parameters of 7,844 galaxies and 12,972 quasars of SDSS on learned eigenspectra, model "
    "atmospheres of stars, noise curves of 98 LAMOST spectra",
)
REAL = _provenance(
    "observed spectra of SDSS, LAMOST and others on the paper's grid",
    OBSERVED,
    "SDSS and LAMOST early releases: public, with acknowledgement; MILES and STELIB: public, with "
    "citation",
    "resampled to 3900-9000 Angstrom; class and instrument are confounded",
)
SUPERNOVAE = _provenance(
    "supernova templates of astrodash, noise added",
    SUPERNOVAE_FILE,
    "not stated; cite Muthukrishna, Parkinson and Tucker, Astrophysical Journal 885, 2019",
    "in the rest frame; noise has the shape of LAMOST noise curves",
)
