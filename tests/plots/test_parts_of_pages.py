"""Figures and images inside an HTML page."""

import io
import re
from base64 import b64decode

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from matplotlib.figure import Figure
from matplotlib.image import imread

from dipedl.plots.page import png_uri, svg


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
