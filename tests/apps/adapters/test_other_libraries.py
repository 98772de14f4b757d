"""The page "Other libraries", block by block, where the libraries are installed.

``python -m pytest tests/adapters -rs`` says which are not; `make test-others` installs them.
"""

import ast
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from dipedl import baselines as ours
from dipedl import metrics
from dipedl.decisions import prediction_sets
from played_pages import play

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[3] / "docs/how-to/other-libraries.md").read_text("utf-8")
BLOCK = re.compile(r"^```py\n(.*?)^```", re.MULTILINE | re.DOTALL)
TITLES = re.findall(r"^## (.*)", PAGE, re.MULTILINE)
SECTIONS = dict(zip(TITLES, re.split(r"^## .*", PAGE, flags=re.MULTILINE)[1:], strict=True))


def imported(code):
    """Packages that a block imports."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    names += [n.module for n in nodes if isinstance(n, ast.ImportFrom)]
    return {name.split(".")[0] for name in names}


def importable(package):
    try:
        import_module(package)
    except (ImportError, RuntimeError) as error:  # the latter of a torchvision for another torch
        pytest.skip(f"{package}: {error}")


@pytest.fixture
def played(tmp_path, monkeypatch):
    """Names after the first block and the blocks of a section, which may use `more` names."""
    monkeypatch.chdir(tmp_path)

    def after(title, **more):
        blocks = BLOCK.findall(SECTIONS[title])
        for package in sorted(set().union(*map(imported, blocks))):
            importable(package)
        names = dict(play(PAGE, "other_libraries", monkeypatch)) | more
        for block in blocks:
            exec(compile(block, title, "exec"), names)
        return names

    return after


def test_every_section_with_code_is_played_here():
    told = set(re.findall(r'played\(\s*"([^"]+)"', Path(__file__).read_text("utf-8")))
    assert told == {title for title in TITLES if BLOCK.search(SECTIONS[title])}


def outranked(names, score):
    """Whether a score (n,), higher for unknown rows, ranks most of them above the known ones."""
    known, unknown = score(names["X_held"]), score(names["unknown"])
    assert known.shape == (len(names["X_held"]),) and unknown.shape == (len(names["unknown"]),)
    y = np.repeat([0, 1], [len(known), len(unknown)])
    return roc_auc_score(y, np.concatenate([known, unknown])) > 0.8


def test_pyod(played):
    names = played("PyOD")
    density = names["by_neighbours"].density_
    Z = names["by_neighbours"].evidence_.transform(names["X_held"])
    assert (density.score_samples(Z) == -density.detector_.decision_function(Z)).all()
    assert outranked(names, names["by_neighbours"].uncertainty)
    assert outranked(names, names["several"].decision_function)


def test_pytorch_ood(played):
    names = played("pytorch-ood")
    assert names["metrics"].compute()["AUROC"] > 0.8
    assert outranked(names, names["by_distance"].uncertainty)
    as_detector = names["ByEvidence"](names["model"])
    assert isinstance(as_detector, names["Detector"])
    assert as_detector(names["new"]).shape == (len(names["new"]),)


def test_scores_of_pytorch_ood(rng):
    """Its detectors of the same names, on the same features and head, give the same scores."""
    importable("pytorch_ood.detector")
    import torch
    from pytorch_ood import detector as theirs

    y = np.arange(400) % 4
    Z = np.maximum(rng.normal(size=(400, 12)) + 2 * rng.normal(size=(4, 12))[y], 0)
    rule = FrozenEstimator(LogisticRegression(C=0.1).fit(Z, y))
    new = np.maximum(rng.normal(size=(60, 12)) * 2, 0)
    w, b = (torch.tensor(part).float() for part in (rule.coef_, rule.intercept_))
    z, q, t = torch.tensor(Z).float(), torch.tensor(new).float(), torch.tensor(y)
    head = torch.nn.Linear(12, 4)
    head.weight.data, head.bias.data = w.clone(), b.clone()
    maps = lambda rows: rows[:, :, None, None]  # noqa: E731
    flat = lambda rows: head(rows.flatten(1))  # noqa: E731
    same = torch.nn.Identity()
    with torch.no_grad():
        logits, asked = head(z), head(q)
        fitted = {
            # its covariances are sums, not means
            "mahalanobis": 2
            * len(Z)
            * theirs.Mahalanobis(None).fit_features(z, t).predict_features(q),
            "rmd": len(Z) * theirs.RMD(None).fit_features(z, t).predict_features(q),
            "fdbd": theirs.fDBD(same, head).fit_features(z).predict_features(q),
            "nci": theirs.NCI(same, head, 1e-4).fit_features(z).predict_features(q),
            "vim": theirs.ViM(None, 6, w, b).fit_features(z, t).predict_features(q),
            "dice": theirs.DICE(None, w, b, 0.9).fit_features(z, t).predict_features(q),
            "guide": theirs.NNGuide(same, head, 10).fit_features(z, t).predict_features(q),
            "kl": theirs.KLMatching(None).fit_logits(logits, t).predict_logits(asked),
            "ash": theirs.ASH(maps, flat, "ash-s", 0.9).predict(q),
            "scale": theirs.SCALE(maps, flat, 0.85).predict(q),
            "react": theirs.ReAct(same, head, threshold=float(np.percentile(Z, 90))).predict(q),
            "knn": theirs.KNN(None).fit_features(z, t).predict_features(q),
            "softmax": 1 + theirs.MaxSoftmax.score(asked),
            "entropy": theirs.Entropy.score(asked),
            "energy": theirs.EnergyBased.score(asked),
            "max": theirs.MaxLogit.score(asked),
            "gen": 4 * theirs.GEN.score(asked),
        }
    mine = {
        "mahalanobis": ours.Mahalanobis(rule, "passthrough", None),
        "rmd": ours.RelativeMahalanobis(rule, "passthrough", None),
        "fdbd": ours.FDBD(rule),
        "nci": ours.NCI(rule),
        "vim": ours.ViM(rule, 6),
        "dice": ours.DICE(rule),
        "guide": ours.NNGuide(rule, bank=1.0),
        "kl": ours.KLMatching(rule),
        "ash": ours.ASH(rule),
        "scale": ours.SCALE(rule),
        "react": ours.ReAct(rule),
        "knn": ours.KNNDistance(rule, "passthrough"),
        "softmax": ours.MaxSoftmax(rule),
        "entropy": ours.PredictiveEntropy(rule),
        "energy": ours.Energy(rule),
        "max": ours.MaxLogit(rule),
        "gen": ours.GEN(rule),
    }
    for name, method in mine.items():
        scores, expected = method.fit(Z, y).uncertainty(new), fitted[name].numpy()
        # it inverts covariances in float32
        tolerance = (1e-4 if name == "rmd" else 1e-5) * np.abs(expected).max()
        np.testing.assert_allclose(scores, expected, atol=tolerance, err_msg=name)


def test_torch_uncertainty(played):
    """Its calibration error, risk-coverage and FPR are those that this library computes."""
    names = played("Metrics")
    P, y = names["answers"].mean, names["y_held"]
    assert float(names["ece"].compute()) == pytest.approx(metrics.ece(y, P), abs=1e-5)
    area = metrics.aurc(P.argmax(axis=1) == y, 1 - P.max(axis=1))
    assert float(names["aurc"].compute()) == pytest.approx(area, abs=0.005)
    known, unknown = (names["clf"].uncertainty(names[name]) for name in ("X_held", "unknown"))
    rate = metrics.fpr_at_tpr(known, unknown)
    assert float(names["fpr"].compute()) == pytest.approx(rate, abs=0.005)


def test_probly(played):
    """Its mutual information of a Dirichlet is our epistemic uncertainty, its AUROC ours."""
    names = played("probly")
    answers = names["answers"]
    found = names["quantify"](names["ArrayDirichletDistribution"](answers.concentration))
    np.testing.assert_allclose(found.epistemic, answers.epistemic, atol=1e-9)
    known, unknown = (names["clf"].uncertainty(names[name]) for name in ("X_held", "unknown"))
    theirs = names["out_of_distribution_detection_auroc"](known, unknown)
    assert theirs == pytest.approx(metrics.ood_auroc(known, unknown))


def test_mapie(played):
    """Its sets of "lac" are those of `prediction_sets` from the same held-out rows."""
    names = played("MAPIE")
    clf, X, y = names["clf"], names["X_held"], names["y_held"]
    P, held = clf.predict_proba(X[150:]), clf.predict_proba(X[:150])
    expected = prediction_sets(P, held, np.searchsorted(clf.classes_, y[:150]), coverage=0.9)
    assert (names["inside"][:, :, 0] == expected).all()
    assert (names["labels"] == clf.predict(X[150:])).all()


def test_skorch(played):
    names = played("skorch")
    net = names["around"].estimator_
    assert type(net).__name__ == "NeuralNetClassifier"
    floats = lambda rows: rows.astype(np.float32)  # noqa: E731
    assert outranked(names, lambda rows: names["around"].uncertainty(floats(rows)))


def tiny_bert(classes):
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 32, "vocab_size": 40, "max_position_embeddings": 16}
    return BertForSequenceClassification(BertConfig(**sizes, id2label=dict(enumerate(classes))))


def word_tokenizer():
    """One token per word w0 .. w35."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    known = {"[PAD]": 0, "[UNK]": 1} | {f"w{i}": i + 2 for i in range(36)}
    words = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")


def test_hugging_face(played, tmp_path, monkeypatch):
    """A text classifier of words w0 .. w17, trained for a moment; w18 .. w35 are unknown to it."""
    pytest.importorskip("accelerate")
    torch = pytest.importorskip("torch")
    importable("transformers.modeling_utils")
    transformers = import_module("transformers")
    # It takes the folder tests/datasets for the package of that name.
    monkeypatch.setattr("transformers.trainer.is_datasets_available", lambda: False)
    torch.manual_seed(0)
    rng, tokenizer = np.random.default_rng(0), word_tokenizer()

    def texts(n, first):
        return [
            " ".join(f"w{i}" for i in rng.integers(first[c % 2], first[c % 2] + 9, 8))
            for c in range(n)
        ]

    def rows(n):
        coded = tokenizer(texts(n, (0, 9)))
        kept = ("input_ids", "attention_mask")
        return [{**{k: coded[k][i] for k in kept}, "labels": i % 2} for i in range(n)]

    trainer = transformers.Trainer(
        tiny_bert(["calm", "angry"]),
        transformers.TrainingArguments(
            str(tmp_path),
            num_train_epochs=4,
            learning_rate=5e-3,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
        ),
        data_collator=transformers.DataCollatorWithPadding(tokenizer),
        train_dataset=rows(160),
        eval_dataset=rows(100),
    )
    trainer.train()
    pipe = transformers.pipeline("text-classification", model=trainer.model, tokenizer=tokenizer)
    names = played("Hugging Face", trainer=trainer, pipe=pipe)
    model = names["model"]
    assert list(model.classes_) == ["calm", "angry"]
    coded = [tokenizer(texts(60, first), return_tensors="pt") for first in ((0, 9), (18, 27))]
    known, unknown = ({k: c[k] for k in ("input_ids", "attention_mask")} for c in coded)
    told = [one["label"] for one in pipe(texts(60, (0, 9)))]
    assert told == (["calm", "angry"] * 30) == list(model.answers(known).labels)
    vacuity = [model.answers(rows).dirichlet.vacuity.mean() for rows in (known, unknown)]
    assert vacuity[0] < vacuity[1]


def test_mlflow(played, monkeypatch, tmp_path):
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "runs").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no other
    names = played("MLflow")
    X, clf = names["X_held"], names["clf"]
    answers = names["again"].predict(X)
    np.testing.assert_array_equal(answers["vacuity"], clf.uncertainty(X))
    np.testing.assert_array_equal(answers["flagged"], clf.predict_ood(X) == -1)
    assert not list(tmp_path.rglob("*.pkl"))


def test_a_card_of_skops(played, tmp_path):
    played("A card of skops")
    text = (tmp_path / "README.md").read_text("utf-8")
    assert "# Limits" in text and "DIPClassifier" in text


def test_duckdb(played):
    names = played("DuckDB")
    clf, connection = names["clf"], names["connection"]
    query = f"SELECT {', '.join(names['calls'])} FROM 'new.parquet'"
    labels, vacuity, p_values, flagged = map(
        np.array, zip(*connection.sql(query).fetchall(), strict=True)
    )
    answers = clf.answers(names["unknown"].astype(np.float64))  # as DOUBLE has them
    assert (labels == answers.labels.astype(str)).all()
    np.testing.assert_array_equal(vacuity, answers.dirichlet.vacuity)
    np.testing.assert_array_equal(p_values, answers.p_values)
    assert (flagged == answers.flagged).all()
