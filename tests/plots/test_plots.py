"""Figures: what they draw is what plain loops give."""

import io
import re
import subprocess
import sys
from base64 import b64decode
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from matplotlib.figure import Figure  # noqa: E402
from matplotlib.image import imread  # noqa: E402

from dipedl import Dirichlet, plots  # noqa: E402
from dipedl.decisions import reject_curve  # noqa: E402
from dipedl.plots.page import png_uri, svg  # noqa: E402


def labelled(rng, n=400, k=3):
    P = rng.dirichlet(np.ones(k), n)
    return np.array([rng.choice(k, p=p) for p in P]), P


def data_of(line):
    return np.asarray(line.get_xdata()), np.asarray(line.get_ydata())


def test_reliability_matches_a_naive_loop(rng):
    y, P = labelled(rng)
    shown = plots.ReliabilityDisplay(y, P).plot(n_bins=5, min_rows=1)
    confidence, hit = P.max(axis=1), P.argmax(axis=1) == y
    expected = []
    for b in range(5):
        inside = (confidence >= b / 5) & (confidence < (b + 1) / 5)
        if inside.any():
            expected.append((confidence[inside].mean(), hit[inside].mean()))
    np.testing.assert_allclose(np.column_stack(data_of(shown.line_)), expected)


def test_reliability_intervals_hold_the_accuracy_and_lie_in_the_unit_interval(rng):
    P = [[1.0, 0.0], [0.6, 0.4], [0.6, 0.4]]
    bars = plots.ReliabilityDisplay([0, 0, 1], P).plot(min_rows=1).errors_
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    assert ends.min() >= -1e-12 and ends.max() <= 1 + 1e-12
    # Wilson's interval of 1 of 1, as in his formula: 1 / (1 + z^2)
    assert ends[-1, 0] == pytest.approx(1 / (1 + 1.959964**2))


def test_reliability_leaves_out_bins_of_few_rows():
    confidence = np.repeat([0.62, 0.85], [19, 20])
    y, P = np.arange(39) % 2, np.stack([confidence, 1 - confidence], axis=1)
    shown = plots.ReliabilityDisplay(y, P).plot()
    assert shown.line_.get_xdata().tolist() == pytest.approx([0.85])
    shown.plot(min_rows=19)
    assert shown.line_.get_xdata().tolist() == pytest.approx([0.62, 0.85])
    with pytest.raises(ValueError, match="min_rows must be an integer >= 1, got 0"):
        shown.plot(min_rows=0)


def test_histogram_says_what_is_wrong():
    with pytest.raises(ValueError, match="at least one set"):
        plots.VacuityHistogramDisplay({}).plot()
    for bad in ([], [np.nan], [[1.0]]):
        with pytest.raises(ValueError, match="vacuity\\['OOD'\\] must be a non-empty 1-d array"):
            plots.VacuityHistogramDisplay({"OOD": bad}).plot(legend=False)


@pytest.mark.parametrize("highest_first", [True, False])
def test_the_axis_of_errors_holds_every_curve_that_is_drawn_into_it(rng, highest_first):
    correct, u = rng.random(400) < 0.8, rng.random(400)
    good, bad = ~correct + 0.1 * u, correct + 0.1 * u
    ax = None
    for uncertainty in (bad, good) if highest_first else (good, bad):
        ax = plots.RiskCoverageDisplay(correct, uncertainty).plot(ax).ax_
    highest = max(line.get_ydata().max() for line in ax.lines)
    assert highest == 1 and ax.get_ylim() == pytest.approx((0, 1.05))
    ax = None
    parts = (~correct, np.zeros(400, bool)) if highest_first else (np.zeros(400, bool), ~correct)
    for part in parts:
        ax = plots.promised_risk(reject_curve(u, part), ax=ax)
    low, high = ax.get_ylim()
    assert low == 0 and high > max(line.get_ydata().max() for line in ax.lines)


def test_dirichlet_bars_show_mean_and_interval():
    d = Dirichlet([[9.0, 1.0, 2.0]])
    ax = plots.dirichlet_bars(d, class_names=["x", "y", "z"])
    np.testing.assert_allclose([bar.get_height() for bar in ax.patches], d.mean[0])
    low, high = d.credible_interval()
    ends = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
    np.testing.assert_allclose(ends, np.column_stack([low[0], high[0]]))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["x", "y", "z"]


def test_dirichlet_bars_refuse_many_inputs_and_wrong_names():
    with pytest.raises(ValueError, match="dirichlet must hold one input, got 2"):
        plots.dirichlet_bars(Dirichlet(np.ones((2, 3))))
    with pytest.raises(ValueError, match="class_names must hold 3 names, got 2"):
        plots.dirichlet_bars(Dirichlet(np.ones((1, 3))), class_names=["a", "b"])


@pytest.mark.slow
def test_nothing_touches_pyplot():
    code = (
        "import sys, numpy as np\n"
        "from dipedl import plots, Dirichlet\n"
        "import dipedl.apps.spectra as spectra_plots\n"
        "spectra_plots.spectrum_plot, plots.vacuity_against, plots.unknown_matrix\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plots.RiskCoverageDisplay.from_predictions([True, False], [0, 1])._repr_png_()\n"
        "plots.dirichlet_bars(Dirichlet(np.ones((1, 2))))\n"
        "spectra_plots.spectrum_plot(np.linspace(4000, 9000, 50), np.ones(50), redshift=0.1)\n"
        "plots.vacuity_against({'a': ([1, 2], [0.1, 0.2])}, log=True)\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_figures_can_be_drawn_in_threads(rng, tmp_path):
    y, P = labelled(rng)

    def draw(i):
        path = tmp_path / f"{i}.png"
        plots.ReliabilityDisplay(y, P).plot().figure_.savefig(path)
        return path.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(draw, range(8)))) == 1


def test_lines_follow_a_dark_style(rng):
    from matplotlib import style

    found = plots.unknown_counts(
        [0, 1],
        [[0.9, 0.1], [0.2, 0.8]],
        [0.1, 0.9],
        held_out=[0.1, 0.2, 0.3, 0.4],
        false_alarm_rate=0.2,
        ood={"stars": ([[0.5, 0.5]], [0.8])},
    )
    with style.context("dark_background"):
        (line,) = plots.unknown_matrix(found).lines
        many = (rng.random(900), rng.random(900))
        (hexagons,) = plots.vacuity_against({"Galaxy": many}).collections[:1]
    assert line.get_color() == "white"
    assert (hexagons.get_facecolor()[:, :3] == 1).all()


def curve_of(rng):
    u = rng.random(1000)
    return reject_curve(u, rng.random(1000) < 0.3 * u**2)


def test_promised_risk_draws_the_bounds_the_observed_rate_and_the_choice(rng):
    curve = curve_of(rng)
    ax = plots.promised_risk(curve, risk=0.05, label="total")
    bounds, observed, target, choice = ax.lines
    np.testing.assert_array_equal(bounds.get_ydata(), curve.upper)
    np.testing.assert_array_equal(observed.get_ydata(), curve.risk)
    assert set(target.get_ydata()) == {0.05}
    (x,), (y,) = choice.get_data()
    chosen = curve.coverage[curve.thresholds == curve.threshold(0.05)]
    assert x == chosen and y <= 0.05
    assert plots.promised_risk(curve, ax=ax) is ax and len(ax.lines) == 6


def test_a_risk_that_cannot_be_promised_has_no_dot(rng):
    *_, choice = plots.promised_risk(curve_of(rng), risk=0.001).lines
    assert len(choice.get_xdata()) == 0


def test_svg_takes_the_colours_of_the_page():
    figure = Figure()
    figure.add_subplot().plot([0, 1], color="#0072B2")
    text = svg(figure, 'a "line" <b>', "name")
    assert text.startswith("<svg") and "xmlns" not in text and "<metadata" not in text
    assert "#000000" not in text and "currentColor" in text
    assert "#0072b2" not in text and "var(--c0)" in text
    assert 'aria-label="a &#34;line&#34; &lt;b&gt;"' in text
    assert all(name.startswith("name-") for name in re.findall(r'\bid="([^"]*)"', text))


def test_png_holds_the_image():
    image = np.linspace(0, 1, 12).reshape(3, 4)
    stored = imread(io.BytesIO(b64decode(png_uri(image).partition(",")[2])))
    np.testing.assert_allclose(stored[..., 0], image, atol=1 / 255)
