"""Fits in two passes: one model whatever the parts, the order and the engine; bad input told."""

import errno
import hmac
import os
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dipedl
from dipedl import DIPClassifier
from dipedl.apps.large import LocalEngine, fit, like
from dipedl.apps.large.fitting import FirstPass, SecondPass
from dipedl.apps.table.errors import UserError
from dipedl.density import GDADensity, KernelDensity
from dipedl.density.streaming import group_keys, row_keys
from weekly import sample_of, sample_of_rows

pytestmark = pytest.mark.filterwarnings("ignore")
PASSES = (FirstPass, SecondPass)
ROWS, SMALL = 1200, {"reservoir": 500, "calibration": 100}


@pytest.fixture(scope="module")
def frame():
    X, y = make_blobs(ROWS, centers=3, n_features=4, cluster_std=2.5, random_state=0)
    made = pd.DataFrame(X * [1, 10, 100, 1], columns=["b", "a", "d", "c"])
    return made.assign(y=np.array(["p", "q", "r"])[y])


def written(frame, folder, parts):
    """The frame as so many Parquet files."""
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[rows].to_parquet(folder / f"{i:03d}.parquet", index=False)
    return folder


def linear(density=None):
    return DIPClassifier(make_pipeline(StandardScaler(), LogisticRegression()), density)


def assert_same(a, b, frame, tolerance=1e-10):
    X = frame[list("badc")]
    X = pd.concat([X.head(100), X.head(20) * 30], ignore_index=True)
    np.testing.assert_allclose(a.score_samples(X), b.score_samples(X), rtol=tolerance)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), rtol=tolerance)
    np.testing.assert_allclose(a.uncertainty(X), b.uncertainty(X), rtol=tolerance)
    assert a.offset_ == pytest.approx(b.offset_, rel=tolerance)
    assert a.evidence_.n_ == b.evidence_.n_


@pytest.fixture(scope="module")
def whole(frame):
    return fit(linear(), frame, "y", **SMALL)


@pytest.mark.parametrize(("parts", "workers"), [(3, 1), pytest.param(7, 2, marks=pytest.mark.slow)])
def test_parts_order_and_processes_make_no_difference(frame, whole, parts, workers, tmp_path):
    folder = written(frame.sample(frac=1, random_state=parts), tmp_path / "parts", parts)
    found = fit(linear(), folder, "y", **SMALL, engine=LocalEngine(workers))
    assert (found.rows, found.learned, found.held_out) == (ROWS, whole.learned, whole.held_out)
    assert found.held_out == 100 and found.learned == ROWS - 100
    assert_same(found.classifier, whole.classifier, frame)


@pytest.mark.parametrize("density", [None, GDADensity()])
def test_where_all_rows_fit_it_is_the_fit_in_memory(frame, density, tmp_path):
    folder = written(frame, tmp_path / "parts", 4)
    found = fit(linear(density), folder, "y", calibration=150)
    held, rest = parted(frame, 150)
    expected = linear(density).fit(
        rest.drop(columns="y"), rest["y"], calibration=(held.drop(columns="y"), held["y"])
    )
    assert_same(found.classifier, expected, frame)


def test_whole_groups_are_held_out(frame, tmp_path):
    """A person's rows lie in several files; the sum of two halves of the persons is the same."""
    persons = frame.assign(person=[f"person {i % 80}" for i in range(ROWS)])
    folder = written(persons, tmp_path / "parts", 4)
    options = {"group_column": "person", "calibration": ROWS}
    found = fit(linear(GDADensity()), folder, "y", **options)
    held = persons["person"].map(lambda name: group_keys(np.array([name]), 0x5EED)[0] < 0.1 * 2**64)
    names = set(persons["person"][held])
    assert 2 <= len(names) < 20 and found.held_out == held.sum() == 15 * len(names)
    assert [column.name for column in found.columns] == list("badc")
    model, X = found.classifier, frame[list("badc")]
    memory = linear(GDADensity()).fit(
        X[~held], frame["y"][~held], calibration=(X[held], frame["y"][held])
    )
    assert_same(model, memory, frame, 1e-6)
    memory.calibrate(X[held], frame["y"][held], groups=persons["person"][held])
    effect = memory.held_out_rows().design_effect
    assert model.held_out_rows().design_effect == pytest.approx(effect)
    few = fit(linear(GDADensity()), folder, "y", group_column="person", calibration=30).classifier
    assert len(few.held_out_rows()) == 30 and few.evidence_.n_ == (~held).sum()
    same = fit(like(model), persons[::2], "y", **options).classifier
    both = same + fit(like(model), persons[1::2], "y", **options).classifier
    whole = fit(like(model), persons, "y", **options).classifier
    assert_same(both, whole, frame, 1e-8)
    assert both.held_out_rows().design_effect == pytest.approx(effect)


def test_groups_that_cannot_be_held_out_in_parts_are_named(frame):
    persons = frame.assign(person=np.where(frame.index == 7, None, frame.index % 80))
    found = fit(linear(GDADensity()), persons, "y", group_column="person")
    assert [one.reason for _, one in found.refused.first] == ["no group: the entry is missing"]
    with pytest.raises(UserError, match="`group_column` names 'patient'"):
        fit(linear(), frame, "y", group_column="patient")
    with pytest.raises(UserError, match="too few groups"):
        fit(linear(), frame.assign(person=frame.index % 3), "y", group_column="person")


def parted(frame, most):
    """The rows that the hash holds out, and the others in the order of their other key."""
    X, y = frame[sorted("badc")], frame["y"].to_numpy(dtype=str)
    drawn, held = row_keys(X, y, 1), row_keys(X, y, 0x5EED)
    lowest = np.argsort(held)[:most]
    lowest = lowest[held[lowest] < 0.1 * 2.0**64]
    rest = np.setdiff1d(np.arange(len(frame)), lowest)
    return frame.iloc[lowest], frame.iloc[rest[np.argsort(drawn[rest])]]


def test_a_class_of_the_last_part_and_an_empty_part(frame, tmp_path):
    folder = written(frame.sort_values("y", kind="stable"), tmp_path / "parts", 6)
    frame.head(0).to_parquet(folder / "empty.parquet")
    model = linear(GDADensity())
    found = fit(model, folder, "y", **SMALL).classifier
    shuffled = written(frame, tmp_path / "shuffled", 2)
    assert_same(found, fit(model, shuffled, "y", **SMALL).classifier, frame)


def test_of_a_rare_class_just_enough_rows_are_learned_from(frame):
    rare = frame.assign(y=np.where(np.arange(ROWS) < 20, "rare", frame["y"]))
    found = fit(linear(GDADensity()), rare, "y", reservoir=100, calibration=50)
    assert found.classes["rare"] == 20 and "rare" in found.notes[-1]
    weights = [m.weight for m in found.classifier.density_.moments_]
    assert sum(weights) == found.learned == ROWS - 50
    assert len(found.inputs) < 100 + 5
    some = fit(linear(GDADensity()), rare, "y", reservoir=ROWS, calibration=50)
    assert len(some.inputs) == some.learned and len(some.notes) == 0


def test_the_prior_of_frequencies_is_that_of_all_rows(frame):
    rare = frame["y"].eq("p") & (np.arange(ROWS) % 20 != 0)
    rows = frame[~rare].reset_index(drop=True)
    model = linear(GDADensity()).set_params(prior="empirical")
    clf = fit(model, rows, "y", reservoir=60, calibration=100).classifier
    shares = rows["y"].value_counts(normalize=True).sort_index()
    np.testing.assert_allclose(clf.prior_, 1.5 * shares, rtol=1e-12)


def test_many_whole_numbers_are_classes():
    many = pd.DataFrame({"a": np.arange(3600.0), "y": np.arange(3600) % 300})

    def stop(X, rows):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        fit(stop, many, "y", **SMALL)
    with pytest.raises(UserError, match="that is regression"):
        fit(stop, many.assign(y=many["a"] + 0.5), "y", **SMALL)


@pytest.mark.parametrize("partitions", sample_of([None, 100], 0))
def test_a_gap_makes_no_numbers_of_truths(frame, partitions, tmp_path):
    """A file without gaps has the type bool, and one with a gap has objects."""
    truths = frame.assign(t=pd.Series(frame["b"] > frame["b"].median(), dtype=object))
    truths.loc[7, "t"] = None
    truths.loc[300:399, "t"] = None
    folder = written(truths, tmp_path / "parts", 3)
    options = {"types": {}, **SMALL}
    found = fit(linear_with_gaps(), folder, "y", **options, partitions=partitions)
    assert {c.name: c.kind for c in found.columns}["t"] == "boolean"
    assert found.refused.rows == 0


def linear_with_gaps():
    return DIPClassifier(HistGradientBoostingClassifier(max_iter=2), GDADensity())


def test_a_key_may_be_left_out_too(frame):
    named = frame.assign(id=np.arange(ROWS))
    found = fit(linear(GDADensity()), named, "y", drop=["id"], key="id", calibration=60)
    assert list(found.classifier.feature_names_in_) == list("badc")


LABELS = [
    [False, True, False],
    np.array([3, 1, 2], np.int16),
    [3.0, 1.0, 2.0],
    pd.Categorical(["p", "q", "r"]),
    pd.Categorical([7, 5, 6]),
    *(
        pd.Series([3, 1, 2]).astype(kind)
        for kind in ("Int64", "int64[pyarrow]", "double[pyarrow]", "string[pyarrow]")
    ),
    *(pd.Series([False, True, False]).astype(kind) for kind in ("boolean", "bool[pyarrow]")),
]


@pytest.mark.parametrize(
    "labels",
    sample_of(LABELS, 0, 2, 3, 6),
    ids=lambda labels: f"{type(labels).__name__}-{getattr(labels, 'dtype', 'bool')}",
)
def test_classes_are_those_of_a_fit_in_memory(frame, labels, tmp_path):
    frame = frame[: ROWS // 2]
    named = frame.assign(y=pd.Series(labels)[frame["y"].map({"p": 0, "q": 1, "r": 2})].array)
    model = linear(GDADensity()).set_params(cv="in-sample")
    expected = model.fit(frame[list("badc")], named["y"])
    for data in (named, written(named, tmp_path / "parts", 3)):
        found = fit(linear(GDADensity()), data, "y", calibration=50).classifier
        for one, other in ((found, expected), (found.density_, expected.density_)):
            assert one.classes_.dtype == other.classes_.dtype
            np.testing.assert_array_equal(one.classes_, other.classes_)
        assert (found.predict(frame[list("badc")]) == np.asarray(named["y"])).mean() > 0.9


@pytest.mark.parametrize(("labels", "kind"), [([3, 1, 2], "i"), ([False, True, False], "b")])
def test_a_gap_makes_no_other_classes(frame, labels, kind, tmp_path):
    """pandas makes floats or objects of them in the file that has the gap."""
    y = np.array(labels)[frame["y"].map({"p": 0, "q": 1, "r": 2})]
    folder = written(frame.assign(y=y), tmp_path / "parts", 2)
    gap = pd.Series(y[:99].tolist(), dtype=object)
    gap[7] = None
    frame.head(99).assign(y=gap.infer_objects()).to_parquet(folder / "gap.parquet", index=False)
    found = fit(linear(GDADensity()), folder, "y", calibration=50)
    assert found.refused.rows == 1 and found.classifier.classes_.dtype.kind == kind
    assert found.classifier.classes_.tolist() == sorted(set(labels))


LARGE = 2**53 + 1


def of_file(values, kind):
    """Labels as another program writes them into a file where all are whole, or with a gap."""
    made = pd.Series(values, dtype=object)
    if kind == "gap":
        made[0] = None
    return made.astype({"int": "int64", "gap": "Int64", "text": str, "float": "float64"}[kind])


@pytest.mark.parametrize(
    ("labels", "kinds"),
    sample_of_rows(
        [
            ([1.0, 1.5, 2.0], ["float", "int"]),
            ([1.0, 1.5, 2.0], ["float", "text"]),
            ([1.0, 2.0, 3.0], ["float", "int", "text", "gap"]),
            ([LARGE, LARGE + 1, LARGE + 2], ["int", "gap"]),
        ],
        *(2, 3),
    ),
)
def test_classes_do_not_depend_on_the_types_of_the_files(frame, labels, kinds, tmp_path):
    """A file of whole numbers alone has integers, one with a gap has floats in some programs."""
    y = np.array(labels, dtype=object)[frame["y"].map({"p": 0, "q": 1, "r": 2})]
    parts = np.array_split(np.argsort(y == 1.5, kind="stable")[::-1], len(kinds))
    (tmp_path / "parts").mkdir()
    for i, (rows, kind) in enumerate(zip(parts, kinds, strict=True)):
        some = frame.iloc[rows].assign(y=of_file(y[rows].tolist(), kind).array)
        some.to_parquet(tmp_path / "parts" / f"{i}.parquet", index=False)
    options = {"types": {}, **SMALL}
    found = fit(linear(GDADensity()), tmp_path / "parts", "y", **options)
    names = [str(int(label) if label == int(label) else label) for label in labels]
    assert found.classifier.classes_.tolist() == names
    gaps = [rows[0] for rows, kind in zip(parts, kinds, strict=True) if kind == "gap"]
    whole = frame.assign(y=y).drop(index=gaps)
    expected = fit(linear(GDADensity()), whole, "y", **options)
    assert_same(found.classifier, expected.classifier, frame)
    assert found.classes == expected.classes


def test_an_empty_text_is_a_gap(frame, tmp_path):
    """As in the fit of one file."""
    town = np.where(np.arange(len(frame)) % 9, np.where(frame["y"] == "p", "here", "there"), "")
    options = {"types": {}, **SMALL}
    for name, value in (("empty", " "), ("gap", None)):
        (tmp_path / name).mkdir()
        of = frame.assign(town=np.where(town == "", value, town))
        of.to_parquet(tmp_path / name / "0.parquet", index=False)
    empty, gap = (
        fit(linear_with_gaps(), tmp_path / name, "y", **options) for name in ("empty", "gap")
    )
    rows = of.drop(columns="y")
    assert rows["town"].isna().any()
    np.testing.assert_array_equal(
        empty.classifier.predict_proba(rows), gap.classifier.predict_proba(rows)
    )


def test_versions_are_classes_of_their_own_and_digits_in_texts_stay_texts(frame):
    options = {"types": {}, **SMALL}
    versions = frame.assign(y=frame["y"].map({"p": "1", "q": "1.0", "r": "2.0-beta"}))
    found = fit(linear(GDADensity()), versions, "y", **options, partitions=100)
    assert found.classifier.classes_.tolist() == ["1", "1.0", "2.0-beta"]
    digits = frame.assign(y=frame["y"].map({"p": "1", "q": "2", "r": "3"}))
    found = fit(linear(GDADensity()), digits, "y", calibration=50).classifier
    assert found.classes_.tolist() == ["1", "2", "3"]


def test_a_key_beyond_the_floats_is_exact_beside_a_gap(frame, tmp_path):
    """The rows that are held out depend on the key: of every batch the same."""
    named = frame.assign(id=pd.Series(LARGE + np.arange(ROWS), dtype="Int64"))
    named.loc[[5, 700], "id"] = pd.NA
    options = {"drop": ["id"], "key": "id", "reservoir": 500, "calibration": 60}
    data = written(named, tmp_path / "a", 1)
    one = fit(linear(GDADensity()), data, "y", **options)
    other = fit(linear(GDADensity()), data, "y", **options, partitions=100)
    assert_same(one.classifier, other.classifier, frame)
    assert one.held_out == other.held_out > 50


def test_a_kill_is_resumed_without_the_parts_that_are_done(frame, tmp_path):
    folder, read = written(frame, tmp_path / "parts", 6), []

    class Killed(LocalEngine):
        """Dies in the middle of the second pass."""

        def map(self, function, tasks):
            for number, value in super().map(function, tasks):
                if not isinstance(function, PASSES):
                    yield number, value
                    continue
                read.append(number)
                if len(read) == 9:
                    raise KeyboardInterrupt
                yield number, value

    def again(engine):
        model = linear(GDADensity())
        return fit(model, folder, "y", **SMALL, engine=engine, work=tmp_path / "work")

    with pytest.raises(KeyboardInterrupt):
        again(Killed())
    read.clear()
    found = again(Killed())
    assert len(read) == 12 - 8
    assert_same(found.classifier, fit(linear(GDADensity()), frame, "y", **SMALL).classifier, frame)
    # A file that was written anew is read anew, and no other.
    frame.head(200).to_parquet(folder / "000.parquet", index=False, compression=None)
    read.clear()
    again(Killed())
    assert len(read) == 2


class Counted(LocalEngine):
    """Counts the parts that are worked on."""

    def __init__(self):
        super().__init__()
        self.parts = 0

    def map(self, function, tasks):
        for one in super().map(function, tasks):
            self.parts += isinstance(function, PASSES)
            yield one


@pytest.fixture
def stopped(frame, tmp_path):
    """A folder of data, that of what a stopped fit has kept, and the call that goes on."""
    folder, work = tmp_path / "parts", tmp_path / "work"
    folder.mkdir()
    for i, rows in enumerate(np.array_split(np.arange(ROWS), 2)):
        plain = frame.iloc[rows].reset_index(drop=True)
        plain.to_feather(folder / f"{i}.arrow", compression="uncompressed")

    def again():
        engine = Counted()
        found = fit(linear(GDADensity()), folder, "y", **SMALL, engine=engine, work=work)
        return found.classifier, engine.parts

    again()
    return folder, work, again


class Planted:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("checksum", sample_of([b"", bytes(32), None], 2))
def test_nothing_that_others_put_among_what_was_kept_is_run(stopped, tmp_path, checksum):
    _, work, again = stopped
    data = pickle.dumps(Planted(tmp_path / "run"))
    for file in work.glob("*.part"):
        lead = hmac.digest(b"", file.name.encode() + data, "sha256") if checksum is None else b""
        file.write_bytes((checksum or lead) + data)
    assert again()[1] == 4
    assert not (tmp_path / "run").exists()


def test_a_key_that_others_know_is_no_key(stopped, tmp_path, monkeypatch):
    _, work, again = stopped
    assert work.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert again()[1] == 4 and again()[1] == 0
    key = tmp_path / "state" / "dipedl" / "key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    assert again()[1] == 4 and again()[1] == 0
    key.write_bytes(b"")
    assert again()[1] == 4
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    with pytest.warns(UserWarning, match="XDG_STATE_HOME") as told:
        assert again()[1] == 4
    assert {of.filename for of in told if "XDG_STATE_HOME" in str(of.message)} == {__file__}


def test_other_rows_of_the_same_size_and_time_are_learned_from(frame, stopped):
    folder, _, again = stopped
    at = folder / "0.arrow"
    old, content = at.stat(), at.read_bytes()
    value = np.float64(frame["a"].iloc[0]).tobytes()
    at.write_bytes(content.replace(value, np.float64(-5).tobytes()))
    assert at.read_bytes() != content
    os.utime(at, ns=(old.st_atime_ns, old.st_mtime_ns))
    found, parts = again()
    assert parts > 1
    expected = fit(linear(GDADensity()), folder, "y", **SMALL).classifier
    assert_same(found, expected, frame, 0)
    os.utime(folder / "1.arrow")
    assert again()[1] == 0


def test_a_full_disk_leaves_nothing_that_looks_complete(frame, tmp_path, monkeypatch):
    folder, work, kept = written(frame, tmp_path / "parts", 3), tmp_path / "work", []
    whole = os.fsync

    def full_at_the_fifth(handle):
        kept.append(handle)
        if len(kept) == 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(handle)

    model = linear(GDADensity())
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_at_the_fifth)
        with pytest.raises(UserError, match=r"No space left.*Free space there, .* same work"):
            fit(model, folder, "y", **SMALL, work=work)
    found = fit(model, folder, "y", **SMALL, work=work).classifier
    assert_same(found, fit(model, folder, "y", **SMALL).classifier, frame, 0)


@pytest.mark.slow
def test_ray_makes_no_difference(frame, whole, tmp_path, ray_engine):
    folder = written(frame, tmp_path / "parts", 6)
    found = fit(linear(), folder, "y", **SMALL, engine=ray_engine, work=tmp_path / "work")
    assert_same(found.classifier, whole.classifier, frame)
    assert found.learned == ROWS - 100


def test_bad_rows_are_refused_and_counted(frame, tmp_path):
    folder = written(frame, tmp_path / "parts", 4)
    odd = frame.head(50).astype({"a": str, "y": object})
    odd.loc[:4, "a"] = "much"
    odd.loc[10:12, "y"] = [None, "", " "]
    odd.to_parquet(folder / "odd.parquet", index=False)
    found = fit(linear(GDADensity()), folder, "y", calibration=50)
    assert found.refused.rows == 8 and found.rows == ROWS + 50
    assert found.rows == found.learned + found.held_out + found.refused.rows
    told = {(one.column, one.row) for _, one in found.refused.first}
    assert told == {("y", i) for i in (11, 12, 13)} | {("a", i) for i in range(1, 6)}


def test_a_corrupt_file_is_reported_and_the_rest_is_learned(frame, tmp_path):
    folder = written(frame, tmp_path / "parts", 3)
    (folder / "bad.parquet").write_bytes(b"PAR1 this is none")
    found = fit(linear(GDADensity()), folder, "y", calibration=50)
    assert found.rows == ROWS and "bad.parquet cannot be read" in found.troubles[0]


@pytest.mark.parametrize("partitions", [None, 150])
def test_pages_that_cannot_be_read_are_left_out(frame, partitions, tmp_path):
    """A whole footer over corrupt pages: both passes leave out the same parts."""
    folder = written(frame, tmp_path / "parts", 3)
    bad = folder / "001.parquet"
    content = bytearray(bad.read_bytes())
    content[4:3000] = bytes(2996)
    bad.write_bytes(content)
    options = {"calibration": 50}
    found = fit(linear(GDADensity()), folder, "y", **options, partitions=partitions)
    assert found.rows == found.learned + found.held_out == 800
    (told,) = found.troubles
    assert "001.parquet cannot be read" in told


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda f: f.drop(columns="y"), "names 'y', which is not in part"),
        (lambda f: f.drop(columns="c"), r"'c' \(in 600 rows\).*drop=\['c'\]"),
        (lambda f: f.assign(more=1.0), "differ in their columns.*'more'"),
    ],
)
def test_files_that_differ_in_their_columns_are_refused(frame, tmp_path, change, reason):
    folder = written(frame.head(600), tmp_path / "parts", 1)
    change(frame.tail(600)).to_parquet(folder / "b.parquet", index=False)
    with pytest.raises(UserError, match=reason):
        fit(linear(), folder, "y", **SMALL)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (lambda f: f.assign(y=None), "no row with a class in 'y'"),
        (lambda f: f.head(0), "no row with a class in 'y'"),
        (lambda f: pd.concat([f, f[["c"]]], axis=1), "more than one column 'c'"),
        (lambda f: pd.concat([f, f[["y"]]], axis=1), "more than one column 'y'"),
        (lambda f: f.assign(y="p"), "two classes are needed"),
        (lambda f: f.head(40), "give more rows"),
        (lambda f: pd.concat([f.head(20)] * 50), "a column that tells them apart"),
        (lambda f: f[list("badc")].to_numpy(), "without labels"),
    ],
)
def test_what_nothing_can_be_learned_from_is_refused(frame, data, reason):
    with pytest.raises(UserError, match=reason):
        fit(linear(), data(frame), "y")


@pytest.mark.parametrize("name", ["reservoir", "calibration"])
def test_a_sample_of_too_few_rows_is_refused(frame, name):
    with pytest.raises(ValueError, match=f"{name} must be an integer >= 20, got 5"):
        fit(linear(), frame, "y", **{**SMALL, name: 5})


def test_a_wrong_setting_is_refused_before_any_row_is_read(frame):
    read = []
    with pytest.raises(TypeError, match="normalizer must"):
        fit(linear().set_params(normalizer="zscore"), frame, "y", progress=read.append)
    assert not read


def test_rows_that_repeat_are_told_apart_by_a_key(frame):
    copies = pd.concat([frame.head(20)] * 50).assign(id=np.arange(1000))
    found = fit(linear(GDADensity()), copies, "y", key="id", calibration=60)
    assert found.held_out == 60 and list(found.classifier.feature_names_in_) == list("badc")


def test_names_that_are_numbers_are_read_as_their_texts(frame):
    """As of `pd.DataFrame(X)`, beside a target that has a name."""
    texts = frame.set_axis([*"0123", "y"], axis=1)
    named, numbered = (
        fit(linear(GDADensity()), rows, "y", **SMALL)
        for rows in (texts, texts.rename(columns=lambda name: int(name) if name != "y" else name))
    )
    assert list(numbered.classifier.feature_names_in_) == list("0123")
    X = texts.drop(columns="y")
    np.testing.assert_array_equal(
        numbered.classifier.predict_proba(X), named.classifier.predict_proba(X)
    )


def test_a_column_that_is_all_null_does_no_harm(frame):
    empty = frame.assign(none=pd.Series([None] * ROWS, dtype=object))
    with pytest.raises(ValueError, match="must be finite"):
        fit(linear(GDADensity()), empty, "y", **SMALL)
    guessed = {"types": {}, **SMALL}
    found = fit(linear(GDADensity()), empty, "y", **guessed)
    assert found.refused.rows == 0 and found.learned == ROWS - 100
    assert [column.name for column in found.columns if not column.used] == ["none"]


def test_a_density_that_is_no_sum_stays_with_the_reservoir(frame):
    found = fit(linear(KernelDensity()), frame, "y", **SMALL)
    assert "KernelDensity" in found.notes[0]
    assert len(found.classifier.density_.rows_) < 500 and found.classifier.evidence_.n_ == 1100
    with pytest.raises(UserError, match="does not add up"):
        like(found.classifier)


def test_days_are_merged(frame, tmp_path):
    """Both days with the classifier of the first: the sum is the fit of both days at once."""
    one, two = frame.iloc[:700], frame.iloc[700:]
    first = fit(linear(GDADensity()), one, "y", calibration=60).classifier
    first.save(tmp_path / "a.dipedl")
    again = like(dipedl.load(tmp_path / "a.dipedl"))
    fit(again, two, "y", calibration=60).classifier.save(tmp_path / "b.dipedl")
    a, b = (dipedl.load(tmp_path / f"{name}.dipedl") for name in "ab")
    both = fit(like(a), frame, "y", calibration=60).classifier
    assert_same(a + b, both, frame, 1e-9)
    other = fit(linear(GDADensity()), two, "y", calibration=60).classifier
    with pytest.raises(ValueError, match="classifiers were fitted apart"):
        a + other


def test_a_merge_takes_the_frequencies_of_the_rows_of_both(frame):
    one, two = frame.iloc[:400], frame.iloc[400:]
    two = two[two["y"].ne("p") | (two.index % 10 == 0)]
    model = linear(GDADensity()).set_params(prior="empirical")
    a = fit(model, one, "y", calibration=60).classifier
    b = fit(like(a), two, "y", calibration=60).classifier
    rows = pd.concat([one, two])
    shares = rows["y"].value_counts(normalize=True).sort_index()
    for both in (a + b, b + a):
        np.testing.assert_allclose(both.prior_, 1.5 * shares, rtol=1e-12)
    assert_same(a + b, fit(like(a), rows, "y", calibration=60).classifier, frame, 1e-9)
