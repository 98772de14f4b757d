import numpy as np
import pytest
from small_spectra import small_ingredients

from dipedl_bench.datasets.semi_real import (
    PAPER_FILE_MIX,
    STAR_SHARES,
    count_classes,
    draw,
    extinction,
    generate_spectra,
    light,
    parts_of,
)

CLASSES = ("GALAXY", "QSO", "STAR")


INGREDIENTS = small_ingredients()


def one_by_one(d, draws):
    """The physics as one would write it first: a loop over spectra, `np.interp`, no batches."""
    w = d["wavelength"]
    log = np.log10(w)
    x = (log - log.mean()) / (log.max() - log.min()) * 2
    powers = np.stack([np.ones_like(x), x, x * x])
    smooth, _ = np.linalg.qr(powers.T)
    kinds = [(kind, row) for kind in STAR_SHARES for row in range(len(d[f"STAR_{kind}_C"]))]
    rows = []
    for i, number in enumerate(draws.label):
        j, c = draws.source[i], CLASSES[number]
        if c == "STAR":
            kind, row = kinds[j]
            v = d[f"STAR_{kind}_C"][row].astype(float) @ d[f"STAR_{kind}_B"]
            v = np.interp(w, w * (1 + draws.velocity[i] / 2.998e5), v)
            f = np.clip(v / np.median(v), 0, None) * extinct(w, draws.reddening[i])
        else:
            r = d[c + "_c"][j].astype(float) @ d[c + "_E"]
            v = np.interp(log - np.log10(1 + float(d[c + "_z"][j])), d[c + "_grid"], r)
            v = v - smooth @ (smooth.T @ v)
            f = d[c + "_poly"][j] @ powers + d[c + "_amp"][j] * v / v.std()
        f = f / np.median(f)
        cheb = np.polynomial.chebyshev.chebvander(x / np.abs(x).max(), 4)[:, 1:].T
        f = f * np.exp(draws.calibration[i] @ cheb)
        rows.append(f + d["noise_shape"][draws.curve[i]] / draws.snr[i] * draws.noise[i])
    return np.array(rows)


def extinct(w, ebv):
    y = 1e4 / w - 1.82
    a = 1 + 0.17699 * y - 0.50447 * y**2 - 0.02427 * y**3 + 0.72085 * y**4
    a += 0.01979 * y**5 - 0.77530 * y**6 + 0.32999 * y**7
    b = 1.41338 * y + 2.28305 * y**2 + 1.07233 * y**3 - 5.38434 * y**4
    b += -0.62251 * y**5 + 5.30260 * y**6 - 2.09002 * y**7
    return 10 ** (-0.4 * 3.1 * ebv * (a + b / 3.1))


def drawn(d, n, seed=5):
    label = np.random.default_rng(seed).integers(3, size=n)
    return draw(parts_of(d), label, np.random.default_rng(seed))


def test_light_is_that_of_a_loop_over_spectra():
    draws = drawn(INGREDIENTS, 300)
    assert set(draws.label) == {0, 1, 2}
    expected = one_by_one(INGREDIENTS, draws)
    np.testing.assert_allclose(light(parts_of(INGREDIENTS), draws), expected, rtol=2e-6, atol=2e-6)


def test_extinction_in_the_visual_is_one_ratio_of_total_to_selective():
    # by definition A(V) = R_V E(B-V) and A(B) = (R_V + 1) E(B-V); the law has both within 1 %
    visual, blue = extinction(np.array([1e4 / 1.82, 1e4 / 2.27]))
    assert visual == pytest.approx(3.1, rel=1e-9)
    assert blue == pytest.approx(4.1, rel=0.015)


def test_seed_decides_and_chunks_differ():
    first, again = (generate_spectra(INGREDIENTS, [200, 200, 200], 1) for _ in range(2))
    other = generate_spectra(INGREDIENTS, [200, 200, 200], 2)
    np.testing.assert_array_equal(first.flux, again.flux)
    # 10 is the least S/N of a star, so it comes more than once; all other numbers are their own
    numbers = np.concatenate([first.snr[first.snr != 10], other.snr[other.snr != 10]])
    assert len(np.unique(numbers)) == len(numbers) > 1000


@pytest.mark.parametrize(
    ("mix", "counts"),
    [
        (PAPER_FILE_MIX, [343, 101, 556]),
        ({"GALAXY": 34, "QSO": 10, "STAR": 956}, [34, 10, 956]),
        ({"STAR": 0.5005, "QSO": 0.4995}, [0, 500, 500]),
        ({"GALAXY": 1.0}, [1000, 0, 0]),
    ],
)
def test_counts_are_exact(mix, counts):
    assert count_classes(mix, 1000).tolist() == counts
    label = generate_spectra(INGREDIENTS, counts, 0).label
    assert np.bincount(label, minlength=3).tolist() == counts


def test_what_is_known_of_each_is_that_of_its_object():
    spectra = generate_spectra(INGREDIENTS, [200, 100, 200], 0)
    galaxies = spectra.select(spectra.label == spectra.target_names.index("GALAXY"))
    row = np.array([int(name.split("-")[1]) for name in galaxies.name])
    np.testing.assert_array_equal(galaxies.redshift, INGREDIENTS["GALAXY_z"][row].astype(float))
    assert np.all(spectra.redshift[spectra.label == 2] == 0)
    pairs = set(zip(spectra.name.tolist(), spectra.group.tolist(), strict=True))
    assert len(pairs) == len(set(spectra.name)) == len(set(spectra.group))


@pytest.mark.parametrize(
    "mix",
    [
        {"Galaxy": 1.0},
        {},
        {"QSO": 4, "STAR": 5},
        {"QSO": 0.4, "STAR": 0.5},
        {"QSO": -1.0, "STAR": 2.0},
        {"QSO": np.nan, "STAR": 2.0},
    ],
)
def test_a_mix_that_is_none_is_refused(mix):
    with pytest.raises(ValueError, match="mix must"):
        count_classes(mix, 10)


def test_chance_has_the_stated_distributions():
    n = 6000
    rng = np.random.default_rng(1)
    draws = draw(parts_of(INGREDIENTS), np.repeat([0, 1, 2], n // 3), rng)
    galaxies = draws.label == 0
    floor = 10 * np.maximum(1, INGREDIENTS["GALAXY_sn"][draws.source[galaxies]] / 10)
    ratio = np.log(draws.snr[galaxies] / floor)
    assert [ratio.mean(), ratio.std()] == pytest.approx([0.1, 0.25], abs=0.02)
    counts = np.bincount(draws.source[galaxies], minlength=23)
    assert counts.min() > 0.6 * counts.mean() and counts.max() < 1.4 * counts.mean()
    stars = draws.label == 2
    assert np.median(draws.snr[stars]) == pytest.approx(30, rel=0.05)
    assert np.mean(draws.snr[stars] == 10) == pytest.approx(0.058, abs=0.02)  # P(N < -ln 3 / 0.7)
    assert draws.velocity[stars].std() == pytest.approx(60, rel=0.06)
    assert draws.reddening[stars].mean() == pytest.approx(0.08, rel=0.08)
    assert not draws.velocity[~stars].any() and not draws.reddening[~stars].any()
    assert draws.calibration.std() == pytest.approx(0.06, rel=0.03)
    kinds = np.bincount(parts_of(INGREDIENTS).stars.kind[draws.source[stars]], minlength=7)
    shares = np.array(list(STAR_SHARES.values()))
    np.testing.assert_allclose(kinds / kinds.sum(), shares, atol=0.035)
    assert [draws.noise.mean(), draws.noise.std()] == pytest.approx([0, 1], abs=0.01)
