import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score
from threadpoolctl import threadpool_limits

from dipedl.apps import demo
from dipedl.apps.demo import models as demo_models
from dipedl.apps.demo import summary
from dipedl.apps.demo.rows import BARE, DIP, ID, NO_MODEL, flagged
from dipedl.apps.demo.runner import in_places
from dipedl.datasets import load_mini_mnist
from dipedl.dirichlet import entropy, max_prob
from small_demo import computed

SETS = ["kmnist", "omniglot", "omniglot_inverted"]


@pytest.fixture(scope="module")
def seen(demo_run):
    return demo_run[1]


@pytest.fixture(scope="module")
def result(demo_run):
    return demo_run[0]


def rows_of(result, name):
    return {row.method: row for row in result.rows if row.model == name}


def test_stages_are_those_announced_and_timed(result, seen):
    assert seen == demo.stages(("linear", "forest")) == list(result.receipt.seconds)
    assert all(seconds >= 0 for seconds in result.receipt.seconds.values())


def test_every_classifier_has_its_rows(result):
    assert [row.model for row in result.rows] == ["linear"] * 3 + ["forest"] * 3 + [NO_MODEL] * 2
    assert [row.method for row in result.rows[:3]] == [DIP, *BARE]
    assert all(list(row.ood) == SETS for row in result.rows)


def test_ood_scores_agree_with_scikit_learn(result):
    for model in result.models:
        for method, row in rows_of(result, model.name).items():
            for name in SETS:
                known, other = model.on[ID].scores[method], model.on[name].scores[method]
                truth = np.repeat([0, 1], [len(known), len(other)])
                u = np.concatenate([known, other])
                score = row.ood[name]
                assert score.auroc == pytest.approx(roc_auc_score(truth, u))
                assert score.aupr == pytest.approx(average_precision_score(truth, u))
                assert score.aupr_prevalence == pytest.approx(truth.mean())
                assert score.auroc_low <= score.auroc <= score.auroc_high
                # strictest threshold that catches 95 % of the others
                caught = np.sort(other)[::-1][int(np.ceil(0.95 * len(other))) - 1]
                assert score.fpr95 == pytest.approx((known >= caught).mean())


def test_id_scores_agree_with_naive_ones(result):
    y = result.dataset.y_test
    for model in result.models:
        rows = rows_of(result, model.name)
        for method, P in ((DIP, model.on[ID].dirichlet.mean), (BARE[1], model.on[ID].bare)):
            row = rows[method]
            assert row.accuracy == pytest.approx((P.argmax(axis=1) == y).mean())
            assert row.brier == pytest.approx(((P - np.eye(10)[y]) ** 2).sum(axis=1).mean())
            if np.isfinite(row.nll):  # a bare forest may say 0 to the truth
                assert row.nll == pytest.approx(log_loss(y, P), rel=1e-6)
            for name in SETS:
                Q = model.on[name]
                Q = Q.dirichlet.mean if method == DIP else Q.bare
                assert row.ood[name].brier == pytest.approx(((Q - 0.1) ** 2).sum(axis=1).mean())


def test_scores_are_what_their_names_say(result):
    for model in result.models:
        for answers in model.on.values():
            P = answers.bare
            np.testing.assert_allclose(answers.scores[BARE[0]], 1 - P.max(axis=1), atol=1e-12)
            terms = np.where(P > 0, -P * np.log(np.where(P > 0, P, 1)), 0)
            np.testing.assert_allclose(answers.scores[BARE[1]], terms.sum(axis=1), atol=1e-12)
            # ranks like vacuity, and never ties
            order = np.argsort(answers.scores[DIP])
            assert (np.diff(answers.dirichlet.vacuity[order]) >= 0).all()
            assert (np.diff(answers.dirichlet.log_evidence[order]) <= 0).all()


def test_answers_are_those_of_the_classifier(result):
    data = demo_models.halved(result.dataset)
    with threadpool_limits(1):  # as in the demo: another number of threads, other last digits
        clf = demo.MODELS["linear"].fit(data.X_train, data.y_train, 0)
    for name, X in ((ID, data.X_test), *data.ood.items()):
        answers = result.models[0].on[name]
        bare = clf.estimator_.predict_proba(X)  # as it came, before any temperature
        expected = (clf.uncertainty(X, "log_density"), max_prob(bare), entropy(bare))
        for method, scores in zip((DIP, *BARE), expected, strict=True):
            np.testing.assert_allclose(answers.scores[method], scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(answers.flagged, clf.predict_ood(X) == -1)
        np.testing.assert_allclose(answers.dirichlet.mean, clf.predict_proba(X), rtol=1e-9)


def test_flags_are_those_beyond_the_alarm_vacuity(result):
    for model in result.models:
        row = rows_of(result, model.name)[DIP]
        for name, answers in model.on.items():
            vacuity = np.asarray(answers.dirichlet.vacuity)
            # at the threshold itself the last bit of the vacuity decides
            clear = np.abs(vacuity - model.alarm_vacuity) > 1e-12
            beyond = vacuity > model.alarm_vacuity
            np.testing.assert_array_equal(answers.flagged[clear], beyond[clear])
            share = row.flagged if name == ID else row.ood[name].flagged
            assert share == pytest.approx(answers.flagged.mean())


def test_entropy_flags_the_least_sure_at_as_many_false_alarms(result):
    for model in result.models:
        known, allowed = model.on[ID].scores[BARE[1]], model.on[ID].flagged.sum()
        entropies = np.sort(known)[::-1]
        tied = entropies[allowed - 1] == entropies[allowed]
        assert flagged(model, BARE[1], ID).sum() == allowed or tied
        for name in SETS:
            shares = model.on[name].scores[BARE[1]] > entropies[allowed]
            np.testing.assert_array_equal(flagged(model, BARE[1], name), shares)
            row = rows_of(result, model.name)[BARE[1]]
            assert row.ood[name].flagged == pytest.approx(shares.mean())


@pytest.mark.parametrize(("alarms", "caught"), [(0, 0), (4, 4)])
def test_no_alarm_and_all_alarms_are_matched_too(result, alarms, caught):
    predictions = result.models[0].on[ID]
    few = replace(
        predictions,
        flagged=np.arange(4) < alarms,
        scores={BARE[1]: np.array([0.4, 0.1, 0.3, 0.2])},
    )
    model = replace(result.models[0], on={ID: few})
    assert flagged(model, BARE[1], ID).sum() == caught


def test_halved_images_are_means_of_four_pixels(result):
    half = demo_models.halved(result.dataset)
    assert half.image_shape == (14, 14)
    image = result.dataset.ood["kmnist"][3].reshape(28, 28)
    naive = [
        [image[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].mean() for j in range(14)] for i in range(14)
    ]
    np.testing.assert_allclose(half.ood["kmnist"][3].reshape(14, 14), naive, rtol=1e-12)


def test_pixels_are_named_by_their_place(result):
    cards = [one.card for one in result.models[0].explained]
    names = [
        entry["name"] for card in cards for part in card.parts for entry in part.get("features", [])
    ]
    assert names and all(name.startswith("row ") for name in names)
    card = replace(
        cards[0], parts=({"features": [{"name": "x0"}, {"name": "x29"}, {"name": "pca2"}]},)
    )
    (part,) = in_places(card, 14).parts
    assert [entry["name"] for entry in part["features"]] == [
        "row 1, column 1",
        "row 3, column 2",
        "pca2",
    ]


def test_trivial_detectors_look_at_ink_only(result):
    data = result.dataset
    rows = rows_of(result, NO_MODEL)

    def border(X):
        images = X.reshape(-1, 28, 28)
        edge = [images[:, 0], images[:, -1], images[:, 1:-1, 0], images[:, 1:-1, -1]]
        return np.concatenate(edge, axis=1).mean(axis=1)

    def intensity(X):
        return np.abs(X.mean(axis=1) - data.X_train.mean())

    for method, detector in (("border ink", border), ("mean intensity", intensity)):
        assert rows[method].accuracy is None and rows[method].flagged is None
        for name in SETS:
            u = np.concatenate([detector(data.X_test), detector(data.ood[name])])
            truth = np.repeat([0, 1], [len(data.X_test), len(data.ood[name])])
            assert rows[method].ood[name].auroc == pytest.approx(roc_auc_score(truth, u), abs=1e-6)


def test_receipt_says_what_was_done(result):
    receipt = result.receipt
    assert (receipt.n_train, receipt.n_test, receipt.seed) == (400, 1000, 0)
    assert receipt.n_ood == dict.fromkeys(SETS, 500)
    assert np.bincount(result.dataset.y_train).tolist() == [40] * 10
    assert receipt.versions["numpy"] == np.__version__


def test_json_holds_every_row(result, tmp_path):
    path = tmp_path / "numbers.json"
    result.write_json(path)
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert stored["receipt"]["models"] == ["linear", "forest"]
    assert len(stored["rows"]) == len(result.rows)
    for row, plain in zip(result.rows, stored["rows"], strict=True):
        assert plain["method"] == row.method
        assert plain["ood"]["kmnist"]["auroc"] == row.ood["kmnist"].auroc


def test_json_holds_the_diagnoses(result):
    diagnoses = json.loads(json.dumps(result.to_json()))["diagnoses"]
    for model in result.models:
        codes = [finding["code"] for finding in diagnoses[model.name]["findings"]]
        assert codes == list(model.diagnosis.codes)


def test_explained_are_the_digit_trusted_least_and_the_others_trusted_most(result):
    for model in result.models:
        for one in model.explained:
            evidence = np.asarray(model.on[one.key].dirichlet.log_evidence)
            extreme = evidence.min() if one.key == ID else evidence.max()
            assert evidence[one.row] == extreme
            assert one.card.evidence == pytest.approx(np.exp(extreme))


def test_json_has_no_nan_or_infinity(result):
    broken = replace(result, rows=(replace(result.rows[0], nll=float("inf")),))
    assert broken.to_json()["rows"][0]["nll"] == "inf"


@pytest.mark.slow
def test_same_seed_same_numbers(result):
    again, _ = computed(("linear",))
    assert again.rows[:3] == result.rows[:3]
    for kind, values in again.moons.maps.items():
        np.testing.assert_array_equal(values, result.moons.maps[kind])


def test_moons_are_unsure_far_away(result):
    maps = result.moons.maps
    assert {values.shape for values in maps.values()} == {(15, 15)}
    assert maps["vacuity"][0, 0] > 0.99 > maps["vacuity"].min()
    assert maps["entropy"][0, 0] < 0.1


@pytest.mark.slow
def test_cnn_is_held_out_from_part_of_its_data():
    pytest.importorskip("torch")
    data = load_mini_mnist()
    X, y = data.X_train[:600], data.y_train[:600]
    clf = demo.MODELS["cnn"].fit(X, y, 0)
    assert clf.normalizer_.source_ == "120 held-out inputs"
    assert clf.evidence_.n_ == 480
    assert clf.score(data.X_test, data.y_test) > 0.7


def test_unknown_or_missing_models_are_refused_at_once(monkeypatch):
    for bad in (("lineer",), ()):
        with pytest.raises(ValueError, match=r"models must be names out of .*'cnn'.*got"):
            demo.run(bad)
    monkeypatch.setattr(demo_models, "find_spec", lambda name: None)
    assert demo.default_models() == ("linear", "forest", "boosted")
    with pytest.raises(ImportError, match=r"the model 'cnn' needs .*pip install 'dipedl\[torch\]'"):
        demo.stages(("cnn",))


def test_boosted_is_a_candidate_like_the_others(rng):
    X, y = rng.random((200, 60)), np.arange(200) % 2
    X[y == 1] += 0.5
    clf = demo.MODELS["boosted"].fit(X, y, 0)
    assert clf.score(X, y) > 0.9 and clf.density is None


def with_scores(result, method, name, values, what="flagged"):
    """The result with other scores in the rows of a method, one for each classifier."""
    values = iter(values)
    rows = []
    for row in result.rows:
        if row.method == method:
            score = replace(row.ood[name], **{what: next(values)})
            row = replace(row, ood={**row.ood, name: score})
        rows.append(row)
    return replace(result, rows=tuple(rows))


@pytest.mark.parametrize(
    ("dip", "verdict", "third"),
    [
        ((0.9, 0.8), "dipedl flags more for every classifier", "(85 against 50)"),
        ((0.9, 0.1), "dipedl flags more for 1 of 2 classifiers", "and nothing on"),
        ((0.1, 0.2), "the classifier's own entropy flags as many or more", "and loses on"),
    ],
)
def test_verdicts_follow_the_numbers(result, dip, verdict, third):
    changed = result
    for name in SETS:
        changed = with_scores(changed, DIP, name, dip)
        changed = with_scores(changed, BARE[1], name, (0.5, 0.5))
    assert {finding.verdict for finding in summary.findings(changed)} == {verdict}
    assert third in summary.headline(changed)
    (told,) = [line for line in summary.cautions(changed) if "images of Omniglot inverted" in line]
    missed = round(100 * (1 - sum(dip) / 2))
    assert f"misses {missed}; {verdict}" in told


def test_headline_is_three_sentences_without_jargon(result):
    changed = result
    for name, dip, bare in zip(SETS, (0.96, 1.0, 0.56), (0.3, 0.2, 0.4), strict=True):
        changed = with_scores(changed, DIP, name, (dip, dip))
        changed = with_scores(changed, BARE[1], name, (bare, bare))
    words = summary.headline(changed)
    known = round(50 * sum(row.flagged for row in result.rows if row.method == DIP))
    assert words == (
        f"Of 100 drawings that are no digits dipedl flags 84; of 100 new digits {known} (mean of "
        "two classifiers). The classifiers alone, flagging the drawings they are least sure of, "
        "with as many false alarms, find 30. It gains most on Omniglot (100 against 20), and "
        "least on Omniglot inverted (56 against 40)."
    )


def test_cautions_name_classifiers_made_surer_on_unknown_images(result):
    calm = with_scores(result, DIP, "kmnist", (0.1, 0.1), "brier")
    calm = with_scores(calm, BARE[1], "kmnist", (0.2, 0.2), "brier")
    assert not any("On K-MNIST the prob" in line for line in summary.cautions(calm))
    surer = with_scores(calm, DIP, "kmnist", (0.1, 0.3), "brier")
    (told,) = [line for line in summary.cautions(surer) if "On K-MNIST the prob" in line]
    assert "for: Forest." in told


def test_easy_sets_are_called_easy(result):
    easy = with_scores(result, "border ink", "kmnist", (0.99,), "auroc")
    assert any("K-MNIST is an easy set: “border ink”" in line for line in summary.cautions(easy))
    hard = with_scores(result, "border ink", "kmnist", (0.6,), "auroc")
    hard = with_scores(hard, "mean intensity", "kmnist", (0.6,), "auroc")
    assert not any("K-MNIST is an easy" in line for line in summary.cautions(hard))


def test_cautions_tell_of_changed_accuracy(result):
    said = summary.cautions(result)[-1]
    by_model = {}
    for row in result.rows:
        if row.accuracy is not None:
            by_model.setdefault(row.model, {})[row.method] = row.accuracy
    change = max(abs(a[summary.DIP] - a[summary.BARE[0]]) for a in by_model.values())
    assert (f"at most {100 * change:.1f} points" if change else "stays as it is") in said
    rows = (replace(result.rows[0], accuracy=result.rows[1].accuracy - 0.01), *result.rows[1:])
    assert "changes by at most 1.0 points" in summary.cautions(replace(result, rows=rows))[-1]


def test_cautions_tell_of_confidence_that_is_farther_from_accuracy(result):
    rows = {(row.model, row.method): row for row in result.rows}
    changed = []
    for model, before, after in zip(result.models, (0.03, 0.02), (0.05, 0.02), strict=True):
        values = {summary.BARE[0]: before, summary.DIP: after}
        changed += [replace(rows[model.name, m], ece=values.get(m)) for m in (DIP, *BARE)]
    changed += [row for row in result.rows if row.model == NO_MODEL]
    told = summary.cautions(replace(result, rows=tuple(changed)))[-1]
    assert told.endswith(f"(ECE) for: {result.models[0].title} (0.030 to 0.050).")
    calm = [replace(row, ece=0.02) if row.ece is not None else row for row in changed]
    assert "no farther" in summary.cautions(replace(result, rows=tuple(calm)))[-1]


def test_versions_leave_out_what_is_not_installed(monkeypatch):
    from dipedl.apps.demo import runner
    from dipedl.io import container

    def version(package):
        if package == "torch":
            raise container.PackageNotFoundError(package)
        return "1"

    monkeypatch.setattr(container, "version", version)
    assert list(runner.installed()) == ["dipedl", "python", "numpy", "scipy", "scikit-learn"]
