from itertools import pairwise

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from scipy.optimize import minimize  # noqa: E402

import dipedl.apps.spectra as spectra_plots  # noqa: E402
from dipedl import Dirichlet, plots  # noqa: E402
from dipedl.apps.spectra import Spectra, paper_grid  # noqa: E402
from dipedl.apps.spectra.plots import spread_apart  # noqa: E402
from dipedl.apps.spectra.spectra import LINES  # noqa: E402

GRID = paper_grid()


def data_of(line):
    return np.asarray(line.get_xdata(), dtype=float), np.asarray(line.get_ydata(), dtype=float)


def some_spectra(rng, n=8):
    flux = rng.normal(1, 0.1, (n, len(GRID))).astype(np.float32)
    return Spectra(
        flux,
        GRID,
        np.arange(n) % 3 - 1,
        ("Galaxy", "Quasar"),
        snr=np.where(np.arange(n) % 2, 12.0, np.nan),
        redshift=np.linspace(0, 1, n),
    )


# ------------------------------------------------------------------------------- one spectrum


def test_smoothed_line_is_the_gaussian_mean_of_the_pixels_that_were_measured(rng):
    x = np.arange(90.0)
    flux, mask = rng.normal(size=90), np.zeros(90, dtype=bool)
    mask[20:24], flux[40] = True, np.nan
    ax = spectra_plots.spectrum_plot(x, np.where(mask, 1e9, flux), mask=mask)
    there = ~mask & np.isfinite(flux)
    expected = []
    for i in range(90):
        near = there & (np.abs(x - i) <= 16)
        weight = np.exp(-((x[near] - i) ** 2) / (2 * 4**2))
        expected.append(weight @ flux[near] / weight.sum())
    np.testing.assert_allclose(data_of(ax.lines[1])[1], expected, rtol=1e-10)
    raw = data_of(ax.lines[0])[1]
    assert np.isnan(raw[~there]).all() and np.isfinite(raw[there]).all()


def test_a_wide_gap_stays_one(rng):
    flux = rng.normal(size=200)
    flux[80:140] = np.nan
    line = data_of(spectra_plots.spectrum_plot(np.arange(200.0), flux).lines[1])[1]
    assert np.isnan(line[100:120]).all() and np.isfinite(line[:80]).all()


@pytest.mark.parametrize("redshift", [0.0, 0.3, 2.4])
def test_lines_are_where_the_redshift_puts_them(rng, redshift):
    ax = spectra_plots.spectrum_plot(GRID, rng.normal(size=3000), redshift=redshift)
    seen = {name: rest * (1 + redshift) for name, rest in LINES.items()}
    seen = {name: x for name, x in seen.items() if 3900 <= x <= 9000}
    marked = [data_of(line)[0][0] for line in ax.lines[2:]]
    names = [text.get_text() for text in ax.texts]
    assert dict(zip(names, marked, strict=True)) == pytest.approx(seen)
    assert ax.get_xlim() == (3900, 9000)


@pytest.mark.parametrize("redshift", [None, np.nan, 20.0])
def test_without_a_redshift_or_a_line_in_range_none_is_marked(rng, redshift):
    ax = spectra_plots.spectrum_plot(GRID, rng.normal(size=3000), redshift=redshift)
    assert len(ax.lines) == 2 and not ax.texts


@pytest.mark.parametrize("redshift", [0.0, 1.7])
def test_names_do_not_overlap_and_lie_above_the_spectrum(rng, redshift):
    ax = spectra_plots.spectrum_plot(GRID, rng.normal(size=3000), redshift=redshift)
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    boxes = [text.get_window_extent(canvas.get_renderer()) for text in ax.texts]
    frame = ax.get_window_extent()
    for left, right in pairwise(boxes):
        assert left.x1 <= right.x0
    top_of_data = ax.transData.transform((0, np.nanmax(data_of(ax.lines[0])[1])))[1]
    for box in boxes:
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1 and box.y1 <= frame.y1
        assert box.y0 > top_of_data


def test_places_of_names_are_the_nearest_that_are_far_enough_apart(rng):
    for _ in range(5):
        x = np.sort(rng.uniform(0, 10, 6))
        places = spread_apart(x, 1.2, 0, 10)
        assert (np.diff(places) >= 1.2 - 1e-9).all()
        assert places[0] >= 0.6 - 1e-9 and places[-1] <= 9.4 + 1e-9
        rules = [{"type": "ineq", "fun": lambda p, i=i: p[i + 1] - p[i] - 1.2} for i in range(5)]
        best = minimize(
            lambda p, x=x: ((p - x) ** 2).sum(),
            np.linspace(1, 9, 6),
            bounds=[(0.6, 9.4)] * 6,
            constraints=rules,
            tol=1e-12,
        )
        np.testing.assert_allclose(places, best.x, atol=1e-4)
    np.testing.assert_allclose(spread_apart(np.array([2.0, 5.0]), 1, 0, 10), [2, 5])
    np.testing.assert_allclose(spread_apart(np.full(4, 5.0), 9, 0, 10), [1.25, 3.75, 6.25, 8.75])


@pytest.mark.parametrize("flux", [np.zeros(3000), np.full(3000, 7.0), np.full(3000, -1e-17)])
def test_a_constant_spectrum_can_be_drawn(flux):
    low, high = spectra_plots.spectrum_plot(GRID, flux, redshift=0.1).get_ylim()
    assert low < flux[0] < high


# ------------------------------------------------------------------------------------ gallery


def test_gallery_says_of_each_what_it_is_and_what_is_said(rng):
    spectra, d = some_spectra(rng), Dirichlet(rng.uniform(1, 9, (8, 2)))
    axes = spectra_plots.trusted_spectra(spectra, d, n=4)
    order = np.argsort(-np.asarray(d.log_evidence), kind="stable")
    for i, ax in zip([*order[:4], *order[:3:-1]], axes.flat, strict=True):
        title = ax.get_title(loc="left")
        truth = ("", "is Galaxy; ", "is Quasar; ")[i % 3]
        first = "Galaxy" if d.mean[i][0] > 0.5 else "Quasar"
        assert title.startswith(f"{truth}{first} {d.mean[i].max():.2f}")
        assert ("S/N" in title) == bool(i % 2)
        assert f"z {i / 7:.3f}" in title
        for p in d.mean[i]:
            assert f"{p:.2f}" in title


def test_trusted_spectra_are_those_of_the_ends_of_the_ranking(rng):
    spectra = some_spectra(rng)
    # vacuity ties at 1 for all, the log-evidence does not
    log_evidence = rng.permutation(np.linspace(-900, -800, 8))
    d = Dirichlet(np.ones((8, 2)), log_evidence)
    axes = spectra_plots.trusted_spectra(spectra, d, n=2)
    order = np.argsort(log_evidence)
    for ax, row in zip(axes.ravel(), [*order[::-1][:2], *order[:2]], strict=True):
        assert f"z {row / 7:.3f}" in ax.get_title(loc="left")


# --------------------------------------------------------------------------- vacuity against x


def test_running_median_and_band_are_those_of_a_naive_loop(rng):
    x, u = rng.uniform(1, 100, 360), rng.beta(1, 5, 360)
    ax = plots.vacuity_against({"a": (x, u)}, log=True)
    order = sorted(range(360), key=lambda i: x[i])
    groups = [order[30 * i : 30 * (i + 1)] for i in range(12)]
    at = [np.median([x[i] for i in g]) for g in groups]
    odds = np.log(u / (1 - u))
    expected = np.array([np.quantile([odds[i] for i in g], [0.16, 0.5, 0.84]) for g in groups])
    across, middle = data_of(ax.lines[0])
    np.testing.assert_allclose(across, at)
    np.testing.assert_allclose(middle, expected[:, 1])
    band = ax.collections[-1].get_paths()[0].vertices
    np.testing.assert_allclose(np.unique(band[:, 1]), np.unique(expected[:, [0, 2]]))


def test_points_without_x_are_left_out_and_counted(rng):
    x = np.concatenate([rng.uniform(1, 9, 50), [np.nan, np.inf, 0.0, -3.0]])
    u = np.full(54, 0.2)
    for log, lost in ((True, 4), (False, 2)):
        ax = plots.vacuity_against({"a": (x, u)}, log=log)
        assert [text.get_text() for text in ax.texts] == [f"{lost} without a value left out"]
        assert len(ax.collections[0].get_offsets()) == 54 - lost


def test_many_points_become_hexagons_darker_where_there_are_more(rng):
    x, u = rng.normal(size=5000), rng.beta(2, 2, 5000)
    ax = plots.vacuity_against({"a": (x, u), "b": (x[:3], u[:3])})
    colors = ax.collections[0].get_facecolor()
    assert np.ptp(colors[:, 3]) > 0.2 and (colors[:, :3] == 0).all()
    assert [line.get_label() for line in ax.lines] == ["a"]  # three points have no median line


def test_a_few_points_at_the_end_leave_room_for_the_others(rng):
    u = np.concatenate([rng.uniform(0.05, 0.2, 999), [1.0]])
    ax = plots.vacuity_against({"a": (np.arange(1000.0), u)})
    low, high = (1 / (1 + np.exp(-end)) for end in ax.get_ylim())
    assert 0.01 < low < 0.05 and 0.2 < high < 0.6
    ticks = [float(label.get_text()) for label in ax.get_yticklabels()]
    assert len(ticks) > 2 and all(low <= tick <= high for tick in ticks)
    assert ax.collections[0].get_offsets()[:, 1].max() <= ax.get_ylim()[1]


@pytest.mark.parametrize("u", [0.0, 1.0, 1e-300])
def test_vacuity_at_the_ends_is_drawn(u):
    ax = plots.vacuity_against({"a": (np.arange(40.0), np.full(40, u))})
    assert np.isfinite(data_of(ax.lines[0])[1]).all()


# -------------------------------------------------------------------------------- unknown column


def case(rng, n=300, held=199):
    """Answers with many ties."""
    y = rng.integers(3, size=n)
    P = rng.dirichlet(np.ones(3), n)
    ood = {"stars": (rng.dirichlet(np.ones(3), 80), rng.integers(0, 30, 80) / 10)}
    u, held_out = rng.integers(0, 20, n) / 10, rng.integers(0, 20, held) / 10
    return y, P, u, held_out, ood


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.5])
def test_counts_are_those_of_a_naive_loop(rng, rate):
    y, P, u, held_out, ood = case(rng)
    found = plots.unknown_counts(y, P, u, held_out=held_out, false_alarm_rate=rate, ood=ood)
    expected = np.zeros((4, 4), dtype=int)
    rows = [
        *zip(y, P, u, strict=True),
        *((3, p, v) for p, v in zip(*ood["stars"], strict=True)),
    ]
    for truth, p, v in rows:
        rare = (1 + sum(h >= v for h in held_out)) / (len(held_out) + 1) <= rate
        assert rare == (v > found.threshold)
        expected[truth, 3 if rare else int(np.argmax(p))] += 1
    np.testing.assert_array_equal(found.counts, expected)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)


def test_false_alarms_are_as_rare_as_asked_for():
    rng, alarms = np.random.default_rng(0), []
    for _ in range(200):
        u = rng.normal(size=150)
        found = plots.unknown_counts(
            np.zeros(50, dtype=int), np.full((50, 2), 0.5), u[:50], held_out=u[50:]
        )
        alarms.append(found.shares[0, 2])
    assert np.mean(alarms) == pytest.approx(5 / 101, abs=0.008)


def test_matrix_shows_every_count_with_its_share(rng):
    y, P, u, held_out, ood = case(rng)
    y[y == 2] = 1  # a class without a row
    found = plots.unknown_counts(y, P, u, held_out=held_out, ood=ood, class_names=["A", "B", "C"])
    ax = plots.unknown_matrix(found)
    cells = {text.get_position(): text.get_text() for text in ax.texts}
    for (i, j), count in np.ndenumerate(found.counts):
        share = "" if i == 2 else f"\n{count / found.counts[i].sum():.1%}"
        assert cells[j, i] == f"{count:,}{share}"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["A", "B", "C", "stars"]
    assert f"{found.threshold:.3g}" in ax.get_title() and "5%" in ax.get_title()
    strongest = max(ax.patches, key=lambda patch: patch.get_alpha())
    i, j = np.unravel_index(np.nanargmax(found.shares), found.shares.shape)
    assert strongest.get_center() == pytest.approx((j, i))


# -------------------------------------------------------------------------------------- refusals

ONES, MASK = np.ones(3000), np.ones(3000, dtype=bool)
SPECTRA = some_spectra(np.random.default_rng(0))
Y, P, U, HELD_OUT, _ = case(np.random.default_rng(0))


def count(y=Y, P=P, u=U, held_out=HELD_OUT, **options):
    return plots.unknown_counts(y, P, u, held_out=held_out, **options)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: spectra_plots.spectrum_plot(GRID, ONES[:9]), "flux"),
        (lambda: spectra_plots.spectrum_plot(GRID[::-1], ONES), "wavelengths"),
        (lambda: spectra_plots.spectrum_plot(GRID, np.full(3000, np.nan)), "flux"),
        (lambda: spectra_plots.spectrum_plot(GRID, ONES, mask=[True]), "mask"),
        (lambda: spectra_plots.spectrum_plot(GRID, ONES, mask=MASK), "not masked"),
        (lambda: spectra_plots.spectrum_plot(GRID, ONES, redshift=-1.0), "redshift"),
        (lambda: spectra_plots.trusted_spectra(SPECTRA, Dirichlet(np.ones((3, 2)))), "Dirichlet"),
        (lambda: spectra_plots.trusted_spectra(SPECTRA, Dirichlet(np.ones((8, 2))), n=9), "n must"),
        (lambda: spectra_plots.spectrum_title([1, 0], 0.1, class_names="abc"), "class_names"),
        (lambda: plots.vacuity_against({}), "sets"),
        (lambda: plots.vacuity_against({"a": ([1, 2], [0.1])}), r"sets\['a'\]"),
        (lambda: plots.vacuity_against({"a": ([1, 2], [0.1, 1.1])}), "vacuity"),
        (lambda: plots.vacuity_against({"a": ([1, 2], [0.1, np.nan])}), "vacuity"),
        (lambda: plots.vacuity_against({"a": ([np.nan], [0.1])}), "finite"),
        (lambda: plots.vacuity_against({"a": ([0.0], [0.1])}, log=True), "positive"),
        (lambda: count(held_out=HELD_OUT[:98], false_alarm_rate=0.01), "at least 99"),
        (lambda: count(false_alarm_rate=5), "false_alarm_rate"),
        (lambda: count(Y + 1), "y must"),
        (lambda: count(Y[:9]), "label in y"),
        (lambda: count(u=U[:9]), "uncertainty"),
        (lambda: count(class_names=["A"]), "class_names"),
        (lambda: count(ood={"stars": (np.ones((2, 2)), [1, 2])}), r"ood\['stars'\]"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, argument):
    with pytest.raises(ValueError, match=argument):
        call()


def test_as_few_held_out_uncertainties_as_a_rate_needs():
    assert count(held_out=HELD_OUT[:99], false_alarm_rate=0.01).n_held_out == 99
