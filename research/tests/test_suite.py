"""Suites: what is read, what is refused and how, and what a plan makes of it."""

from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

import pytest
from tiny_suite import TINY

from dipedl_bench import load_suite, suite_names
from dipedl_bench.spec.plan import method_parts, plan
from dipedl_bench.spec.suite import parse_suite


def tiny(old="", new=""):
    assert old in TINY
    return parse_suite(TINY.replace(old, new, 1) if old else TINY, "tiny.toml")


def planned(suite, methods=("dip-edl",), profile="smoke"):
    return method_parts(suite, profile, methods, "tiny.toml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seeds =", "seads =", "tiny.toml: suite: unknown key 'seads', did you mean 'seeds'"),
        ("seeds = [1, 2]", "", "tiny.toml: seeds: this key is missing"),
        ("seeds = [1, 2]", "seeds = []", "seeds: Tuple should have at least 1 item"),
        ('name = "tiny"', 'name = "../x"', "suite.name: must be of letters, digits, .*'../x'"),
        ("[profiles.smoke]", '[profiles."/tmp"]', "profiles: .*must be of letters, .*'/tmp'"),
        ("[methods.energy]", '[methods."../x"]', "methods: .*must be of letters, .*'../x'"),
        ("[classifiers.net]", '[classifiers."a/b"]', "classifiers: .*must be of .*'a/b'"),
        ("[densities.gaussian]", "[densities.'..']", r"densities: .*must be of .*'\.\.'"),
        ("dataset =", "datset =", "profiles.smoke: unknown key 'datset', did you mean 'dataset'"),
        ("train = 200", "trian = 200", "profiles.smoke.limit.trian.*'train'"),
        ('"mini-mnist"', '"mini-mnst"', "profiles.smoke.dataset: unknown data set 'mini-mnst'"),
        ('ood = ["kmnist"]', 'ood = ["kmnits"]', "ood: unknown OOD set 'kmnits', did you mean 'km"),
        ("train = 200", "train = 0", "profiles.smoke.limit.train: .* got 0"),
        ("resamples = 0", "[profiles.smoke.methods.edll]\nx = 1", "unknown name 'edll', did you m"),
        ("resamples = 0", 'without = ["edll"]', "smoke.without: unknown method 'edll', did you me"),
        ("[suite]", "[suite", "tiny.toml: not TOML"),
        (
            'title = "Energy"',
            'extends = "edl"',
            "methods: energy.extends: unknown name above it 'edl', did",
        ),
    ],
)
def test_a_file_that_is_no_suite_is_refused_with_file_and_key(old, new, message):
    with pytest.raises(ValueError, match=message):
        tiny(old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gamma = 2.0", "gama = 2.0", "methods.dip-edl-features: unknown key 'gama', did you mean"),
        ('"DIPClassifier"', '"DIPClasifier"', "unknown class 'DIPClasifier', did you mean 'DIPCl"),
        ('"GaussianDensity"', '"GausianDensity"', "densities.gaussian: unknown class 'Gausian"),
        ('classifier = "net"', 'classifier = "nett"', "unknown classifiers 'nett', did you mean"),
        ("hidden = [16]", "hiden = [16]", "classifiers.net.backbone: unknown key 'hiden', did you"),
        ('name = "MLP", ', "", "classifiers.net.backbone: a table must say its class"),
        (
            '"ZScore"',
            '"CautionBudget", budget = -1',
            r"methods.dip-edl.normalizer: budget must be in \[0, 1\].* got -1",
        ),
        (
            'normalizer = { name = "ZScore" }',
            "caution = nan",
            "methods.dip-edl: caution must be .*, got nan",
        ),
        ("gamma = 2.0", "prior = -1", "methods.dip-edl-features: prior must be .* got -1"),
        (
            'estimator = "Energy"',
            'estimator = "Energy"\ntemperature = 0',
            "methods.energy: temperature must be finite and > 0, got 0",
        ),
        ("epochs = 2", "epochs = 0", "classifiers.net.training: epochs must be an integer >= 1"),
        ('features = "network"', 'features = "net"', "classes.features: must be one of"),
        ('classifier = "net"\n', "", "methods.dip-edl: a method with a density needs a classifier"),
        ('title = "DIP-EDL"\n', "", "methods.dip-edl: title: this key is missing"),
    ],
)
def test_a_part_that_cannot_be_built_is_refused_before_anything_begins(old, new, message):
    suite = tiny(old, new)
    with pytest.raises(ValueError, match=message):
        planned(suite, suite.method_names("smoke"))


def test_unknown_method_and_profile_name_the_known_ones():
    suite = tiny()
    with pytest.raises(ValueError, match=r"unknown method 'edll', did you mean 'edl'.*'dip-edl'"):
        suite.choose_methods("smoke", ["edll"])
    with pytest.raises(ValueError, match="'tiny': unknown profile 'smok', did you mean 'smoke'"):
        suite.choose_methods("smok")
    with pytest.raises(ValueError, match="unknown suite 'mnst', did you mean 'mnist'"):
        load_suite("mnst")


def test_methods_share_a_part_by_its_config():
    one, two = planned(tiny(), ["dip-edl", "energy"])
    assert one.below["classifier"].digest == two.below["classifier"].digest
    other = planned(tiny("hidden = [16]", "hidden = [8]"))[0]
    assert one.below["classifier"].digest != other.below["classifier"].digest
    assert one.below["density"].digest == other.below["density"].digest
    assert one.digest != other.digest  # a method depends on its parts


@pytest.mark.parametrize("change", [("train = 200", "train = 100"), ('["kmnist"]', '["omniglot"]')])
def test_the_data_is_part_of_every_hash(change):
    before, after = planned(tiny())[0], planned(tiny(*change))[0]
    for role in ("classifier", "density"):
        assert before.below[role].digest != after.below[role].digest


def test_a_profile_overrides_key_by_key_and_its_training_everywhere():
    suite = tiny(
        "resamples = 0",
        "training = { epochs = 7 }\n[profiles.smoke.methods.edl]\nevidence = 'relu'\n"
        "[profiles.smoke.methods.edl.training]\nbatch_size = 8",
    )
    dip, edl = planned(suite, ["dip-edl", "edl"])
    assert dip.below["classifier"].table["arguments"]["training"]["epochs"] == 7
    arguments = edl.table["arguments"]
    assert arguments["training"] == {"epochs": 7, "batch_size": 8, "n_jobs": 1}
    assert arguments["evidence"] == "relu"


def test_a_table_that_names_another_class_replaces_the_old_one():
    suite = tiny(
        "resamples = 0", "[profiles.smoke.classifiers.net]\nbackbone = { name = 'LeNet5' }"
    )
    net = planned(suite)[0].below["classifier"]
    assert net.table["arguments"]["backbone"] == {"name": "LeNet5"}
    other = tiny("resamples = 0", "[profiles.smoke.densities.gaussian]\nestimator = 'KNNDensity'")
    assert planned(other)[0].below["density"].table == {"estimator": "KNNDensity", "arguments": {}}


def test_a_table_that_extends_one_above_it_has_its_keys_and_its_own_on_top():
    text = '[methods.twin]\nextends = "dip-edl-features"\ntitle = "T"\ngamma = 3.0\n'
    text += '[methods.third]\nextends = "twin"\nstatistics = "train"\n'
    suite = parse_suite(TINY + text, "tiny.toml")
    base = suite.methods["dip-edl-features"]
    assert suite.methods["twin"] == {**base, "title": "T", "gamma": 3.0}
    assert suite.methods["third"] == {**suite.methods["twin"], "statistics": "train"}


def test_arguments_that_share_a_name_with_a_key_stand_in_a_table_of_their_own():
    text = (
        "[methods.edl]\ntitle='E'\nestimator='DeepEnsemble'\nn_members=2\n"
        "[methods.edl.arguments.estimator]\nname='TorchClassifier'\nbackbone={name='MLP'}\n"
    )
    suite = parse_suite(TINY[: TINY.index("[methods.edl]")] + text, "tiny.toml")
    arguments = planned(suite, ["edl"])[0].table["arguments"]
    assert arguments["n_members"] == 2
    assert arguments["estimator"]["name"] == "TorchClassifier"


@pytest.mark.parametrize("name", suite_names())
def test_every_suite_of_the_package_can_be_planned_with_every_profile(name):
    suite = load_suite(name)
    for profile in suite.profiles:
        cells = plan(suite, profile, name, seeds=[10])
        methods = {head["method"].partition(":")[0] for cell in cells for head in cell.heads}
        assert methods == set(suite.method_names(profile))


def test_the_paper_profile_has_the_paper_s_flow():
    from dipedl.density import FlowDensity
    from dipedl_bench.spec.build import build

    (part,) = method_parts(load_suite("mnist"), "paper", ["dip-edl-maf"], "mnist.toml")
    ours = build("FlowDensity", part.below["density"].table["arguments"], "")
    published = FlowDensity.paper()
    assert ours.flow == published.flow
    assert ours.preprocessing == published.preprocessing
    assert replace(ours.training, device="auto", compile=False) == published.training


@pytest.mark.parametrize("base", ["mnist", "cifar10", "spectra"])
def test_every_profile_of_the_package_can_be_extended(base):
    text = f'[suite]\nname = "own"\ntitle = "Own"\nseeds = [1]\nextends = "{base}"\n'
    for name, profile in load_suite(base).profiles.items():
        own = parse_suite(f'{text}[profiles.mine]\nextends = "{name}"\n', "own.toml")
        assert own.profiles["mine"] == profile


def test_the_whole_file_of_the_page_can_be_run():
    page = (Path(__file__).parents[1] / "docs/protocol.md").read_text("utf-8")
    lines = page.partition("This is a whole file:\n")[2].splitlines()
    text = "\n".join(takewhile(lambda line: not line or line.startswith("    "), lines))
    suite = parse_suite(dedent(text), "page")
    assert planned(suite, suite.method_names("smoke"))[0].name == "edl"


BORROWED = """
[suite]
name = "mine"
title = "Mine"
seeds = [1]
extends = "mnist"
only = ["edl", "energy", "twice"]

[methods.edl]
extends = "edl"
training = { epochs = 2 }

[methods.twice]
title = "Energy, T = 2"
estimator = "Energy"
classifier = "cnn"
temperature = 2.0

[profiles.smoke]
extends = "smoke"
"""


def test_a_suite_that_extends_another_adds_to_its_methods():
    mine, mnist = parse_suite(BORROWED, "mine.toml"), load_suite("mnist")
    assert mine.method_names("smoke") == ("edl", "energy", "twice")
    assert [*mine.methods] == [*mnist.methods, "twice"]
    assert mine.methods["edl"] == {**mnist.methods["edl"], "training": {"epochs": 2}}
    twice, energy = planned(mine, ["twice", "energy"])
    (theirs,) = method_parts(mnist, "smoke", ["energy"], "mnist.toml")
    assert energy.digest == theirs.digest != twice.digest
    assert twice.below["classifier"].digest == theirs.below["classifier"].digest


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('extends = "mnist"', 'extends = "mine"', "mine.toml: extends: suite 'mine' extends its"),
        ('"twice"]', '"twicer"]', "mine.toml: only: unknown method 'twicer', did you mean 'twice'"),
        ('extends = "edl"', 'extends = "edll"', "edl.extends: unknown name above it 'edll', did"),
    ],
)
def test_a_suite_that_extends_what_is_not_there_is_refused(old, new, message):
    with pytest.raises(ValueError, match=message):
        parse_suite(BORROWED.replace(old, new), "mine.toml")


def test_a_suite_extends_one_in_a_file_beside_it(tmp_path):
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "mine.toml").write_text(BORROWED)
    text = '[suite]\nname = "third"\ntitle = "Third"\nextends = "base/mine.toml"\nseeds = [2]\n'
    text += '[methods.colder]\nextends = "twice"\ntemperature = 0.5\n'
    (tmp_path / "third.toml").write_text(f'{text}[profiles.smoke]\nextends = "smoke"\n')
    third, mine = load_suite(tmp_path / "third.toml"), parse_suite(BORROWED, "mine.toml")
    assert (third.seeds, third.ood) == ((2,), mine.ood)
    assert third.profiles == mine.profiles
    colder = {**mine.methods["twice"], "temperature": 0.5}
    assert third.methods == {**mine.methods, "colder": colder}


@pytest.mark.parametrize(
    ("bases", "error", "message"),
    [
        (("a.toml", ""), ValueError, "a.toml: extends: suite 'a' extends itself"),
        (("b.toml", "a.toml"), ValueError, "b.toml: .* 'b' extends itself, by 'a.toml'"),
        (("c.toml", ""), FileNotFoundError, "a.toml: extends: no suite file .*c.toml"),
    ],
)
def test_a_file_that_extends_itself_or_none_is_refused(tmp_path, bases, error, message):
    for name, base in zip("ab", bases, strict=True):
        text = f'[suite]\nname = "{name}"\ntitle = "T"\nextends = "{base}"\n'
        (tmp_path / f"{name}.toml").write_text(text)
    with pytest.raises(error, match=message):
        load_suite(tmp_path / "a.toml")


def test_a_crossed_suite_can_be_extended():
    text = '[suite]\nname = "own"\ntitle = "Own"\nseeds = [1]\nextends = "defaults"\n'
    text += '[methods.far]\ntitle = "Far"\nestimator = "KNNDistance"\ngroup = "baseline"\n'
    own = parse_suite(f'{text}[profiles.smoke]\nextends = "smoke"\n', "own.toml")
    assert own.datasets == load_suite("defaults").datasets
    assert plan(own, "smoke", "own.toml", methods=["far"])


def test_the_suite_of_the_readme_can_be_run():
    lines = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    lines = lines.partition("of its methods it runs those named by `only`:\n")[2].splitlines()
    text = "\n".join(takewhile(lambda line: not line or line.startswith("    "), lines))
    suite = parse_suite(dedent(text), "README")
    (edl,) = planned(suite, suite.method_names("smoke"))
    assert edl.table["arguments"]["training"]["epochs"] == 3


NEAR = """
[suite]
name = "mine"
title = "Mine"
extends = "mnist"
near = {near}
far = {far}

[profiles.smoke]
extends = "smoke"
"""


@pytest.mark.parametrize(
    ("near", "far", "message"),
    [
        ('["kmnst"]', "[]", "near: unknown OOD set 'kmnst', did you mean 'kmnist'"),
        ('["kmnist"]', '["kmnist"]', r"far: .* near or far, got \['kmnist'\] as both"),
    ],
)
def test_near_and_far_sets_are_known_and_apart(near, far, message):
    with pytest.raises(ValueError, match=message):
        parse_suite(NEAR.format(near=near, far=far), "mine.toml")


def test_near_and_far_are_no_part_of_a_configuration():
    one = parse_suite(NEAR.format(near='["kmnist"]', far="[]"), "mine.toml")
    other = parse_suite(NEAR.format(near="[]", far='["kmnist"]'), "mine.toml")
    heads = [
        [head["config_hash"] for cell in plan(of, "smoke", "mine.toml") for head in cell.heads]
        for of in (one, other)
    ]
    assert heads[0] == heads[1] and heads[0]
