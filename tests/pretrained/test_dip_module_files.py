"""A DIPModule in one file: back to the last bit, and refused where it does not fit."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn

import dipedl
from dipedl.calibration.temperature import Temperature
from dipedl.density import GDADensity
from dipedl.evidence import Identity, QuantileEvidence, ZScore
from dipedl.io import container
from dipedl.pretrained import ClassGaussians, DIPModule
from weekly import sample_of_rows


def mlp(seed=3, width=6):
    torch.manual_seed(seed)
    layers = nn.Linear(4, width), nn.BatchNorm1d(width), nn.Tanh(), nn.Linear(width, 3)
    return nn.Sequential(*layers).eval()


def blobs(n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return torch.tensor(rng.normal(size=(n, 4)) + 2 * np.eye(4)[y]).float(), torch.tensor(y)


X, Y = blobs(200)


def same(found, wanted):
    return all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "module.safetensors"


SETTINGS = [
    {},
    {"classes": ["ant", "bee", "cat"], "prior": np.array([0.5, 1, 2]), "max_evidence": 30.0},
    {"normalizer": QuantileEvidence(0.02, slope=3.0), "calibrator": Temperature(0.5)},
    {"normalizer": ZScore(), "calibrator": "passthrough", "gamma": 0.2, "false_alarm_rate": 0.3},
    {"normalizer": Identity(), "features": "0"},
    {"features": ["0", "3"], "pool": "max"},
    {"density": ClassGaussians("tied", shrinkage=0.1, class_weights="empirical"), "caution": 0.5},
    {"density": ClassGaussians("diagonal", shrinkage=None, dtype=torch.float64)},
    {"density": ClassGaussians("low-rank", coordinates="polar", rank=3)},
]


@pytest.mark.parametrize(
    ("settings", "weights"),
    sample_of_rows(
        [*((settings, True) for settings in SETTINGS), *((SETTINGS[i], False) for i in (0, 5))],
        0,
        3,
        6,
        9,
    ),
)
def test_back_to_the_last_bit(settings, weights, path):
    module = DIPModule(mlp(), **settings).fit_density([(X, Y)])
    module.save(path, weights=weights)
    network = mlp(seed=9 if weights else 3)
    loaded = DIPModule.load(path, network)
    assert loaded.network is network
    assert same(loaded(3 * X), module(3 * X))
    assert torch.equal(loaded.predict_ood(3 * X), module.predict_ood(3 * X))
    assert loaded.n_ == module.n_ and loaded.offset_ == module.offset_
    assert loaded.classes_.tolist() == module.classes_.tolist()
    for name in ("caution", "gamma", "max_evidence", "spread", "false_alarm_rate"):
        assert getattr(loaded.head.settings, name) == getattr(module.head.settings, name)
    # another fit is the same
    assert same(loaded.fit_density([(X, Y)])(X), module.fit_density([(X, Y)])(X))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_types_of_weights(dtype, path):
    module = DIPModule(mlp()).fit_density([(X, Y)]).to(dtype)
    module.save(path)
    loaded = DIPModule.load(path, mlp(seed=9).to(dtype))
    assert same(loaded(X.to(dtype)), module(X.to(dtype)))


def test_paper_stays_the_paper(path):
    module = DIPModule.paper(mlp()).fit_density([(X, Y)])
    module.save(path)
    again = DIPModule.load(path, mlp()).fit_density([(X, Y)])
    assert same(again(X), module(X)) and again.n_ == 200


def test_what_a_file_says_without_building_anything(path):
    module = DIPModule(mlp(), classes=["ant", "bee", "cat"]).fit_density([(X, Y)])
    module.save(path)
    found = dipedl.io.model_file.describe(path)
    assert found["type"] == "DIPModule" and found["n"] == module.n_
    assert found["classes"] == ["ant", "bee", "cat"]
    assert found["versions"]["torch"] == torch.__version__
    assert "the input of '3'" in found["features"]
    with safe_open(path, "numpy") as file:
        assert json.loads(file.metadata()["dipedl"])["format_version"] == container.FORMAT_VERSION


def fitted(**settings):
    return DIPModule(mlp(), **settings).fit_density([(X, Y)])


def test_a_network_that_does_not_fit(path):
    fitted().save(path)
    network = mlp(width=7)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    with pytest.raises(
        ValueError, match=r"network does not fit.*float32 \(7,.*\) here and float32 \(6,.*\) in"
    ):
        DIPModule.load(path, network)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    for other, message in (
        (mlp().append(nn.ReLU()), "module 4 is ReLU here and absent in the file"),
        (mlp().double(), "float64"),
        (mlp()[:3], "3.bias is absent here"),
    ):
        with pytest.raises(ValueError, match=f"network does not fit.*{message}"):
            DIPModule.load(path, other)


def test_other_weights_are_refused_where_the_file_has_none(path):
    fitted().save(path, weights=False)
    with pytest.raises(ValueError, match=r"other weights.*weights=False.*weights=True"):
        DIPModule.load(path, mlp(seed=4))
    network = mlp()
    network[1].running_mean += 1
    with pytest.raises(ValueError, match="other weights"):
        DIPModule.load(path, network)


def test_damage_is_found(path):
    fitted().save(path)
    data = bytearray(path.read_bytes())
    for place in (len(data) - 5, len(data) // 2, 40):
        broken = bytearray(data)
        broken[place] ^= 1
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="damaged"):
            DIPModule.load(path, mlp())
    path.write_bytes(data[:1000])
    with pytest.raises(ValueError, match="damaged"):
        DIPModule.load(path, mlp())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("settings", {}),
        ("settings", None),
        ("structure", 3),
        ("state", {"head/prior": ["load", [3]]}),
        ("state", {"head/prior": ["float32", [4]]}),
        ("state", {"head/prior": ["float32", [3]]}),
    ],
    ids=str,
)
def test_forged_content_is_refused(key, value, path):
    """The checksums are no secret: what they cover is looked at all the same."""
    fitted().save(path, weights=False)
    manifest, tensors = container.read(path)
    del manifest["tensors"]
    container.write(path, manifest | {key: value}, tensors)
    with pytest.raises(ValueError, match="holds no valid DIPModule"):
        DIPModule.load(path, mlp())


@pytest.mark.parametrize("held_out", [5.0, 0, -3, 1.0, True, None, "in sample", {"$float": "nan"}])
def test_forged_shares_of_held_out_rows_are_refused(held_out, path):
    fitted().save(path, weights=False)
    manifest, tensors = container.read(path)
    manifest["settings"]["_held_out"] = held_out
    container.write(path, manifest, tensors)
    with pytest.raises(container.ModelFileError, match="holds no valid DIPModule: held_out must"):
        DIPModule.load(path, mlp())


@pytest.mark.parametrize(
    ("place", "number"), [(-1, -1e9), (1, 0.0), (1, -1.0), (9, -1.0), (9, np.nan), (9, np.inf)]
)
def test_forged_evidence_is_refused(place, number, path):
    """Places: the end of the sharpening, the scale of the normaliser, and the temperature."""
    fitted().save(path, weights=False)
    manifest, tensors = container.read(path)
    del manifest["tensors"]
    numbers = tensors["held_out/evidence"].view(np.float64).copy()
    numbers[place] = number
    tensors = dict(tensors) | {"held_out/evidence": numbers.view(np.uint8)}
    container.write(path, manifest, tensors)
    with pytest.raises(container.ModelFileError, match="holds no valid DIPModule"):
        DIPModule.load(path, mlp())


@pytest.mark.parametrize("name", ["knots", "normal_scores"])
def test_a_forged_table_that_falls_is_refused(name, path):
    fitted().save(path, weights=False)
    manifest, tensors = container.read(path)
    del manifest["tensors"]
    name = f"fusion/{name}"
    falling = tensors[name].view(np.float32).reshape(2, -1)[:, ::-1].copy()
    container.write(path, manifest, dict(tensors) | {name: falling.view(np.uint8).reshape(-1)})
    with pytest.raises(container.ModelFileError, match="holds no valid DIPModule"):
        DIPModule.load(path, mlp())


def test_files_of_other_models(path):
    dipedl.save(GDADensity().fit(X.numpy(), Y.numpy()), path)
    with pytest.raises(ValueError, match=r"holds no DIPModule but .*GDADensity.*dipedl\.load"):
        DIPModule.load(path, mlp())
    fitted().save(path)
    with pytest.raises(ValueError, match=r"holds a DIPModule.*DIPModule\.load\(path, network\)"):
        dipedl.load(path)


def test_the_function_save_names_the_method(path):
    with pytest.raises(TypeError, match=r"call model\.save\(path\)"):
        dipedl.save(DIPModule(mlp()).fit_density([(X, Y)]), path)


def test_what_no_file_can_hold(path):
    with pytest.raises(TypeError, match=r"features is a function.*features='<module>'"):
        fitted(features=lambda net, x: (x, net(x))).save(path)

    class Own(ZScore):
        pass

    with pytest.raises(TypeError, match=r"normalizer .*cannot be saved"):
        fitted(normalizer=Own()).save(path)

    class Stateful(nn.Linear):
        def get_extra_state(self):
            return {"scale": 1}

        def set_extra_state(self, state):
            pass

    network = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), Stateful(6, 3)).eval()
    with pytest.raises(TypeError, match=r"network keeps dict as 2\._extra_state"):
        DIPModule(network).fit_density([(X, Y)]).save(path)
    assert not path.exists()


def test_a_target_that_cannot_be_written(tmp_path, path):
    module = fitted()
    module.save(path)
    before = path.read_bytes()
    with pytest.raises(OSError, match="cannot save to"):
        module.save(tmp_path / "absent" / "file")
    with pytest.raises(OSError, match="cannot save to"):
        module.save(tmp_path)
    assert path.read_bytes() == before
