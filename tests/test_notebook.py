"""What a notebook shows of answers, cards, findings and models: well-formed, escaped, the numbers
of the object itself, without script and without matplotlib."""

import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.datasets import load_iris

from dipedl import DIPClassifier, Dirichlet
from dipedl.density import GDADensity
from dipedl.explanation import Diagnosis, Finding

VOID = {"br", "rect", "path"}


class Page(HTMLParser):
    """The page of an object: which elements it has, and the text inside of them."""

    def __init__(self, shown):
        super().__init__()
        self.open, self.texts, self.attributes = [], [], []
        self.feed(shown._repr_html_())
        self.close()
        assert self.open == [], "an element is not closed"
        assert "script" not in self.tags() and "nan" not in " ".join(self.inside("td"))

    def handle_starttag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            self.texts.append((tag, []))

    def handle_startendtag(self, tag, attrs):
        self.attributes.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            next(texts for tag, texts in reversed(self.texts) if tag == self.open[-1]).append(data)

    def tags(self):
        return {tag for tag, _ in self.attributes}

    def inside(self, tag):
        return ["".join(texts) for name, texts in self.texts if name == tag]

    def of(self, tag, attribute):
        return [values[attribute] for name, values in self.attributes if name == tag]


def said(values):
    """Numbers in the titles of bars."""
    return [
        [float(word.strip("<>,")) for word in title.partition(": ")[2].split() if "." in word]
        for title in values
    ]


def test_bars_have_mean_and_interval_of_each_class():
    d = Dirichlet([[9.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    page = Page(d)
    assert page.inside("caption") == [
        "Dirichlet(n=2, k=3, dtype=float64): vacuity, means and 95 % intervals"
    ]
    assert page.inside("th") == ["input", "vacuity", "class 0", "class 1", "class 2", "0", "1"]
    cells = page.inside("td")
    assert [cells[0], cells[4]] == ["0.25", "1"]
    low, high = d.credible_interval()
    expected = np.stack([d.mean, low, high], axis=-1).reshape(-1, 3)
    found = np.array(said(page.inside("title")))
    np.testing.assert_allclose(found, expected, atol=5.1e-4)
    tracks, bars = np.array(page.of("rect", "width"), dtype=float).reshape(-1, 2).T
    np.testing.assert_allclose(bars / tracks, d.mean.ravel(), atol=1e-4)
    ends = [path.split("M")[2:] for path in page.of("path", "d")]
    whiskers = np.array([[float(end.split()[0]) for end in path] for path in ends])
    np.testing.assert_allclose(whiskers / tracks[:, None], expected[:, 1:], atol=1e-4)
    assert page.of("svg", "role") == ["img"] * 6


def test_of_many_inputs_and_classes_the_first_and_the_leading_are_shown():
    rng = np.random.default_rng(0)
    alpha = 1 + rng.gamma(0.05, 300.0, (1234, 1000))
    alpha[0, 7], alpha[9, 998] = 1e4, 1e4
    page = Page(Dirichlet(alpha))
    assert "n=1234, k=1000" in page.inside("caption")[0]
    assert "the first 10" in page.inside("caption")[0]
    heads = page.inside("th")[2:13]
    assert heads[-1] == "990 others" and {"class 7", "class 998"} <= set(heads)
    assert {f"class {c}" for c in alpha[:10].argmax(axis=1)} <= set(heads[:-1])
    assert len(page.inside("title")) == 110 and len(page.inside("table")) == 1
    shown = [int(head.split()[1]) for head in heads[:-1]]
    rest = np.delete(alpha[0], shown).sum()
    beta = Dirichlet([[rest, alpha[0].sum() - rest]])
    ends = [beta.mean, *beta.credible_interval()]
    assert said(page.inside("title"))[10] == pytest.approx([end[0, 0] for end in ends], abs=6e-4)


@pytest.mark.parametrize("k", [2, 50])
def test_no_input_gives_an_empty_table(k):
    page = Page(Dirichlet(np.ones((0, k))))
    assert f"n=0, k={k}" in page.inside("caption")[0] and page.inside("td") == []


def test_what_rounds_to_zero_or_one_says_so():
    page = Page(Dirichlet([[1e9, 1e-3], [1e-300, 1e-300]]))
    assert page.inside("td")[1:3] == [">0.999", "<0.001"]


def test_tensors_show_what_arrays_show():
    torch = pytest.importorskip("torch")
    alpha = np.random.default_rng(1).uniform(1, 30, (12, 13)).astype(np.float32)
    tensor = torch.tensor(alpha, requires_grad=True)
    ours, theirs = Page(Dirichlet(tensor)), Page(Dirichlet(alpha))
    assert ours.inside("td") == theirs.inside("td")
    assert ours.inside("title") == theirs.inside("title")


@pytest.fixture(scope="module")
def model():
    X, y = load_iris(return_X_y=True)
    names = np.array(["<b>setosa</b>", "versicolor & more", '"virginica"'])
    return DIPClassifier(density=GDADensity()).fit(X, names[y]), X


def test_card_shows_answer_classifier_and_reasons(model):
    clf, X = model
    (card,) = clf.explain(X[:1] + np.array([0, 9, 0, 0]))
    page = Page(card)
    assert page.inside("th")[4:] == list(card.class_names)
    expected = np.stack([card.mean, card.classifier_proba]).T.ravel()
    cells = page.inside("td")
    shown = [float(cell.strip("<>")) for cell in [*cells[1::3], *cells[2::3]]]
    np.testing.assert_allclose(shown, np.r_[expected[::2], expected[1::2]], atol=1.1e-3)
    assert page.inside("mark") == ["flagged as OOD"] and "b" not in page.tags()
    text = "\n".join(page.inside("pre"))
    for line in str(card).splitlines()[1:]:
        assert line.strip() in text


def test_cards_are_a_list_of_which_ten_are_shown(model):
    clf, X = model
    cards = clf.explain(X[:12])
    assert isinstance(cards, list) and len(cards) == 12
    page = Page(cards)
    assert len(page.inside("table")) == 10
    assert page.inside("p") == ["The first 10 of 12 cards."]
    assert Page(clf.explain(X[:2])).inside("p") == []


def test_a_card_of_many_classes_sums_the_others(model):
    clf, X = model
    (card,) = clf.explain(X[:1])
    k = 40
    many = type(card)(
        **vars(card)
        | {
            "class_names": tuple(map(str, range(k))),
            "classifier_proba": np.full(k, 1 / k),
            "dirichlet": Dirichlet(np.arange(1.0, k + 1)[None]),
        }
    )
    heads = Page(many).inside("th")[4:]
    assert len(heads) == 12 and heads[-1] == "other 29" and "39" in heads


def test_findings_are_read_worst_first_and_escaped():
    bad = Finding("a", "warning", "recall of '<i>' is < 1 %", {}, "More rows & labels.")
    fine = Finding("b", "ok", "fine")
    page = Page(Diagnosis((fine, bad), "held-out <rows>"))
    assert page.inside("strong") == ["Diagnosis: 1 warning, 1 ok"]
    assert page.inside("mark") == ["warning", "ok"] and page.inside("code") == ["a", "b"]
    assert page.inside("dd")[0] == "recall of '<i>' is < 1 % More rows & labels."
    assert page.inside("summary") == ["1 ok"] and "held-out <rows>" in page.inside("p")[0]
    assert Page(bad).inside("dd") == page.inside("dd")[:1]
    assert Page(Diagnosis((), "no rows")).inside("strong") == ["Diagnosis: nothing to say"]


def test_matplotlib_is_not_needed(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    clf, X = model
    for shown in (clf.predict_dirichlet(X[:1]), clf.explain(X[:1])):
        assert "svg" in Page(shown).tags()
