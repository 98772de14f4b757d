"""Files of SDSS, LAMOST and the paper in their exact layouts, with made-up content."""

import numpy as np

SDSS_GRID = 10 ** (3.5797 + 1e-4 * np.arange(3850))  # 3799 to 9217 Angstrom
LAMOST_GRID = 10 ** (3.5682 + 1e-4 * np.arange(3909))  # 3700 to 9099 Angstrom


def shape_of(wavelength):
    """A smooth spectrum with a line, as a function of the wavelength."""
    return 10 + wavelength / 1000 + 8 * np.exp(-((wavelength - 6000) ** 2) / 5000)


def write_sdss(
    path,
    *,
    wavelength=SDSS_GRID,
    flux=None,
    ivar=None,
    and_mask=None,
    kind="QSO",
    z=2.0,
    snr=12.5,
    drop=(),
    more=None,
    facts=True,
):
    """A spec-PLATE-MJD-FIBER file: COADD, SPECOBJ, SPZLINE.

    `more` columns of COADD; without `facts` SPECOBJ has no row.
    """
    from astropy.io import fits

    n = len(wavelength)
    columns = {
        "flux": ("E", shape_of(wavelength) if flux is None else flux),
        "loglam": ("E", np.log10(wavelength)),
        "ivar": ("E", np.full(n, 4.0) if ivar is None else ivar),
        "and_mask": ("J", np.zeros(n, int) if and_mask is None else and_mask),
        "or_mask": ("J", np.full(n, 1 << 23)),
        "wdisp": ("E", np.ones(n)),
        "sky": ("E", np.ones(n)),
        "model": ("E", np.ones(n)),
    } | {name: ("D", values) for name, values in (more or {}).items()}
    coadd = fits.BinTableHDU.from_columns(
        [fits.Column(k, f, array=a) for k, (f, a) in columns.items() if k not in drop],
        name="COADD",
    )
    known = {
        "SURVEY": ("6A", np.array(["boss"])),
        "CLASS": ("6A", np.array([kind])),
        "Z": ("E", np.array([z])),
        "SN_MEDIAN": ("5E", np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])),
        "SN_MEDIAN_ALL": ("E", np.array([snr])),
    }
    specobj = fits.BinTableHDU.from_columns(
        [
            fits.Column(k, f, array=a if facts else a[:0])
            for k, (f, a) in known.items()
            if k not in drop
        ],
        name="SPECOBJ",
    )
    lines = fits.BinTableHDU.from_columns(
        [fits.Column("LINENAME", "13A", array=np.array(["Ly_alpha"]))], name="SPZLINE"
    )
    hdus = [fits.PrimaryHDU(), coadd, specobj, lines]
    fits.HDUList([h for h in hdus if h.name not in drop]).writeto(path, overwrite=True)
    return path


def write_spspec(path, *, error=None, and_mask=None, n_rows=5, telescope="SDSS 2.5-M"):
    """A spSpec-MJD-PLATE-FIBER file: rows flux, without continuum, error, mask; tables of lines."""
    from astropy.io import fits

    n = len(SDSS_GRID)
    rows = [
        shape_of(SDSS_GRID),
        np.full(n, 0.1),
        np.full(n, 0.5) if error is None else error,
        np.zeros(n) if and_mask is None else and_mask,
        np.full(n, 1 << 23),
    ]
    hdu = fits.PrimaryHDU(np.asarray(rows[:n_rows], np.float32))
    cards = {"COEFF0": 3.5797, "COEFF1": 1e-4, "TELESCOP": telescope}
    hdu.header.update(cards | {"SPEC_CLN": 3, "Z": 1.5, "SN_R": 9.0})
    lines = fits.BinTableHDU.from_columns([fits.Column("wave", "E", array=np.array([6564.6]))])
    fits.HDUList([hdu, lines]).writeto(path, overwrite=True)
    return path


def write_plate(path, n, telescope):
    """A spPlate-PLATE-MJD file of n fibers: images flux, ivar, masks, dispersion; table of them."""
    from astropy.io import fits

    flux = np.tile(shape_of(SDSS_GRID), (n, 1)) * np.linspace(1, 2, n)[:, None]
    hdu = fits.PrimaryHDU(flux.astype(np.float32))
    hdu.header.update({"COEFF0": 3.5797, "COEFF1": 1e-4, "TELESCOP": telescope, "NFIBER": n})
    fibers = fits.BinTableHDU.from_columns([fits.Column("FIBERID", "J", array=np.arange(n) + 1)])
    images = [np.ones_like(flux), *np.zeros((2, *flux.shape), int), np.ones_like(flux)]
    fits.HDUList([hdu, *map(fits.ImageHDU, images), fibers]).writeto(path, overwrite=True)
    return path


def _lamost_header(header, kind, z, snr):
    header["TELESCOP"] = "LAMOST"
    header["VACUUM"] = "T"
    header["SNRR"] = snr
    header["CLASS"] = kind
    header["Z"] = z


def write_lamost_old(
    path, *, flux=None, ivar=None, and_mask=None, kind="STAR", z=1e-4, snr=30.0, coefficients=True
):
    """DR1 to DR7: rows flux, ivar, wavelength, and-mask, or-mask of the first HDU."""
    from astropy.io import fits

    n = len(LAMOST_GRID)
    rows = [
        shape_of(LAMOST_GRID) if flux is None else flux,
        np.full(n, 4.0) if ivar is None else ivar,
        LAMOST_GRID,
        np.zeros(n) if and_mask is None else and_mask,
        np.ones(n),
    ]
    hdu = fits.PrimaryHDU(np.asarray(rows, np.float32))
    if coefficients:
        hdu.header["COEFF0"], hdu.header["COEFF1"] = 3.5682, 1e-4
    _lamost_header(hdu.header, kind, z, snr)
    hdu.writeto(path, overwrite=True)
    return path


def write_lamost_new(
    path, *, flux=None, ivar=None, and_mask=None, kind="GALAXY", z=0.1, snr=30.0, drop=()
):
    """DR8 and later: a table COADD of one row that holds arrays."""
    from astropy.io import fits

    n = len(LAMOST_GRID)
    columns = {
        "FLUX": shape_of(LAMOST_GRID) if flux is None else flux,
        "IVAR": np.full(n, 4.0) if ivar is None else ivar,
        "WAVELENGTH": LAMOST_GRID,
        "ANDMASK": np.zeros(n) if and_mask is None else and_mask,
        "ORMASK": np.ones(n),
    }
    primary = fits.PrimaryHDU()
    _lamost_header(primary.header, kind, z, snr)
    table = fits.BinTableHDU.from_columns(
        [
            fits.Column(name, f"{n}E", array=np.asarray(a, np.float32)[None])
            for name, a in columns.items()
            if name not in drop
        ],
        name="COADD",
    )
    fits.HDUList([primary, table]).writeto(path, overwrite=True)
    return path


def write_paper(path, flux, label, objid=None, drop=()):
    """One of the paper's files: fluxes (n, 3000) float64, and a table of objid and label."""
    from astropy.io import fits

    objid = np.arange(len(label)) + 100 if objid is None else objid
    columns = [
        fits.Column(name, "K", array=array)
        for name, array in (("objid", objid), ("label", label))
        if name not in drop
    ]
    table = fits.BinTableHDU.from_columns(columns, nrows=len(label))
    fits.HDUList([fits.PrimaryHDU(np.asarray(flux, np.float64)), table]).writeto(path)
    return path
