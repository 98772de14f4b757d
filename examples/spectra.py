"""Classify astronomical spectra, and say where the classes that were learned do not apply.

Offline, in seconds: writes made-up spectra as files in the layout of SDSS, and reads them like real
ones. Galaxies and quasars are learned; spectra of a lamp, as used for calibration, were never seen.
"""

import tempfile
from pathlib import Path

import numpy as np
from astropy.io import fits
from sklearn.pipeline import make_pipeline

from dipedl import DIPClassifier
from dipedl.apps.spectra import read_spectra, spectral_features, toy_spectra

LOGLAM = 3.5797 + 1e-4 * np.arange(3850)  # log10 of 3799 to 9217 Angstrom


def write_sdss(path: Path, flux: np.ndarray, noise: float, kind: str) -> None:
    """Write a file such as spec-PLATE-MJD-FIBER.fits: a table of pixels and one of facts."""
    pixels = {"flux": flux, "loglam": LOGLAM, "ivar": np.full(len(flux), noise**-2)}
    coadd = [fits.Column(name, "E", array=values) for name, values in pixels.items()]
    coadd.append(fits.Column("and_mask", "J", array=np.zeros(len(flux), int)))
    facts = [fits.Column("CLASS", "6A", array=[kind]), fits.Column("Z", "E", array=[0.0])]
    tables = [fits.BinTableHDU.from_columns(columns) for columns in (coadd, facts)]
    fits.HDUList([fits.PrimaryHDU(), *tables]).writeto(path)


def lamp(rng: np.random.Generator) -> np.ndarray:
    """Narrow lines over next to nothing."""
    lines = 10 ** rng.uniform(LOGLAM[0], LOGLAM[-1], 40)
    distance = (10 ** LOGLAM[:, None] - lines) / 3
    return 0.2 + np.exp(-(distance**2)) @ rng.lognormal(1, 0.5, 40)


def write_examples(folder: Path) -> None:
    """200 made-up spectra, ten lamps, and a file that is damaged."""
    rng = np.random.default_rng(0)
    toys = toy_spectra(280)
    for row in np.flatnonzero(toys.label < 2)[:190]:
        flux = np.interp(10**LOGLAM, toys.wavelength, toys.flux[row])
        kind = toys.target_names[toys.label[row]]
        write_sdss(folder / f"spec-{row:03d}.fits", flux, 1 / toys.snr[row], kind)
    for number in range(10):
        flux = lamp(rng) + rng.normal(0, 0.1, len(LOGLAM))
        write_sdss(folder / f"spec-lamp-{number}.fits", flux, 0.1, "LAMP")
    (folder / "spec-damaged.fits").write_bytes(b"SIMPLE")


def main() -> None:
    """Write, read, learn, classify."""
    with tempfile.TemporaryDirectory() as folder:
        write_examples(Path(folder))
        spectra = read_spectra(folder)  # all on one grid; a bad file is listed, not raised
    print(spectra)
    print("Failed:", *(f"{Path(f.file).name}: {f.reason}" for f in spectra.failures))

    classes = np.array([*spectra.target_names, "?"])[spectra.label]  # "?" without a known class
    learned = np.flatnonzero(spectra.label >= 0)[:150]
    features = spectral_features(n_components=10)
    model = make_pipeline(*(step for _, step in features.steps), DIPClassifier(random_state=0))
    model.fit(spectra.flux[learned], classes[learned])

    new = spectra.select(np.setdiff1d(np.arange(len(spectra)), learned))
    proba = model.predict_proba(new.flux)
    known = model[-1].predict_ood(model[:-1].transform(new.flux)) == 1
    answer = np.where(known, model.classes_[proba.argmax(axis=1)], "unknown")
    print(f"\n{'in the file':12}{'GALAXY':>8}{'QSO':>8}{'unknown':>9}")
    for name, title in (("GALAXY", "GALAXY"), ("QSO", "QSO"), ("?", "lamp")):
        mine = answer[np.array([*new.target_names, "?"])[new.label] == name]
        counts = [int((mine == kind).sum()) for kind in ("GALAXY", "QSO", "unknown")]
        print(f"{title:12}{counts[0]:>8}{counts[1]:>8}{counts[2]:>9}")


if __name__ == "__main__":
    main()
