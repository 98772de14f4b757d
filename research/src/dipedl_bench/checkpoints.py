"""Networks that were trained elsewhere: a module and a file of weights, as a classifier."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from dipedl.networks import Network, TorchClassifier
from dipedl.writing import sha256_of

from .datasets.files import FILES, fetch
from .spec.build import import_object, source_hash

__all__ = ["Checkpoint"]

#: Stands for the seed in a path and in options.
_SEED = "{seed}"
#: Names that wrappers of PyTorch put before those of the weights.
_PREFIX = "module."
#: Counters of batch normalisation, which predictions do not need and old files lack.
_COUNTER = "num_batches_tracked"
#: Names that an error lists.
_NAMED = 3
#: How far outputs of the parts may be from those of the whole, relative to the largest.
_TOLERANCE = 1e-4


@dataclass(eq=False, repr=False, kw_only=True)
class Checkpoint(TorchClassifier):
    """A network with the weights of a file: ``fit`` loads it, and trains nothing.

    Its features are what its last linear layer takes, its logits what that gives. A suite gets the
    seed as `random_state`; networks of several trainings stand in the place of seeds.

    Parameters
    ----------
    architecture : str
        ``package.module:function`` or ``package.module:Class``: called with `options` it gives a
        `torch.nn.Module` that maps images (n, channels, height, width) to logits (n, k). The last
        of its linear layers must be what it ends with.
    weights : str
        A file of weights by name: safetensors, or one that ``torch.save`` wrote of a state dict, or
        of a dict with one under "state_dict", which is read without running its code. A prefix
        ``module.`` of all names is dropped. ``{seed}`` stands for the seed, ``*`` for anything; one
        file must match, of the published files of this package first.
    options : mapping, optional
        Arguments of the architecture; the text ``{seed}`` stands for the seed, as an integer.
    mean, sd : tuple of float, default=()
        Pixels in [0, 1] are normalised by these, a number for each channel; () leaves them.

    Raises
    ------
    ValueError
        By ``fit``, if the architecture cannot be imported, the weights are of another one, or the
        number of outputs is not that of the classes. Outputs are those of the sorted labels.

    Examples
    --------
    >>> import tempfile, torch
    >>> from safetensors.torch import save_file
    >>> from dipedl_bench.checkpoints import Checkpoint
    >>> from dipedl_bench.residual_networks import ResNet
    >>> file = f"{tempfile.mkdtemp()}/resnet.safetensors"
    >>> save_file(ResNet(8, 2).state_dict(), file)
    >>> network = Checkpoint(
    ...     architecture="dipedl_bench.residual_networks:ResNet",
    ...     options={"depth": 8, "n_classes": 2},
    ...     weights=file,
    ...     image_shape=(3, 32, 32),
    ... )
    >>> X = torch.rand(4, 3 * 32 * 32).numpy()
    >>> network.fit(X, [0, 1, 0, 1]).transform(X).shape
    (4, 64)
    """

    architecture: str = ""
    weights: str = ""
    options: Mapping[str, Any] | None = None
    mean: tuple[float, ...] = ()
    sd: tuple[float, ...] = ()

    def sources(self) -> dict[str, str]:
        """Return what predictions depend on besides the settings: hashes of files by their names.

        Those of the weights, of every seed, and of the architecture where it is not of this
        package.
        """
        found = {Path(name).name: hash_ for name, hash_ in _hashes(self.weights).items()}
        made = import_object(self.architecture, "architecture")
        own = made.__module__.partition(".")[0] == __name__.partition(".")[0]
        return found if own else {**found, self.architecture: source_hash(made)}

    def build_network(self, n_outputs: int, seed: int) -> Network:
        """Return the network in its parts, without the weights of the file."""
        return self._take_apart(self._build(), n_outputs)

    def _take_network(self, X: Any, y: Any) -> bool:
        X, _, _ = self.validate_fit(X, y, None)
        whole = self._build()
        file = find_weights(self.weights, self.random_state)
        load_weights(whole, read_weights(file), repr(str(file)), self.architecture)
        normalise = _Normalise(self.mean, self.sd, self.image_shape_[0])
        images = torch.from_numpy(X[:2]).reshape(-1, *self.image_shape_)
        with torch.inference_mode():
            expected = self._call(whole, normalise(images))
            self.module_ = self._take_apart(whole, len(self.classes_)).eval()
            found = self._call(self.module_, images.flatten(1))
        if found.shape != expected.shape or not torch.allclose(
            found, expected, rtol=_TOLERANCE, atol=_TOLERANCE * float(expected.abs().max())
        ):
            raise ValueError(
                f"architecture {self.architecture!r} must end with its last linear layer, which "
                "gives the logits of features (n, p); wrap it in a module that does"
            )
        self.module_.to(self.predict_dtype())
        return True

    def _build(self) -> nn.Module:
        make = import_object(self.architecture, "architecture")
        options = {
            key: self.random_state if value == _SEED else value
            for key, value in (self.options or {}).items()
        }
        try:
            with torch.random.fork_rng(devices=[]):
                made = make(**options)
        except Exception as error:  # anybody's code
            raise ValueError(
                f"architecture {self.architecture!r} cannot be made with options {options} "
                f"({type(error).__name__}: {error})"
            ) from error
        if not isinstance(made, nn.Module):
            raise ValueError(
                f"architecture {self.architecture!r} returned an object of the type "
                f"{type(made).__name__}, which is no torch.nn.Module; name the function or class "
                "that makes the network"
            )
        return made.eval()

    def _call(self, module: nn.Module, images: Tensor) -> Tensor:
        try:
            outputs = module(images)
        except Exception as error:  # anybody's code
            raise ValueError(
                f"architecture {self.architecture!r} cannot be applied to images of the shape "
                f"{tuple(images.shape)} ({type(error).__name__}: {error}); pass the image_shape of "
                "the data, or resize them to what the network was trained on"
            ) from error
        if not isinstance(outputs, Tensor) or outputs.ndim != 2:
            shape = getattr(outputs, "shape", type(outputs).__name__)
            raise ValueError(
                f"architecture {self.architecture!r} must give logits (n, k), got {shape}"
            )
        return outputs

    def _take_apart(self, whole: nn.Module, n_outputs: int) -> Network:
        """Return the module as body and head; it is changed: its last linear layer is taken out."""
        linear = [(name, of) for name, of in whole.named_modules() if isinstance(of, nn.Linear)]
        if not linear or not linear[-1][0]:
            raise ValueError(
                f"architecture {self.architecture!r} must have layers, and a torch.nn.Linear after "
                "them, which gives the logits"
            )
        name, head = linear[-1]
        if head.out_features != n_outputs:
            raise ValueError(
                f"architecture {self.architecture!r} has {head.out_features} outputs, the data "
                f"{n_outputs} classes; there must be one for each"
            )
        above, _, last = name.rpartition(".")
        setattr(whole.get_submodule(above), last, nn.Identity())
        body = nn.Sequential(_Normalise(self.mean, self.sd, self.image_shape_[0]), whole)
        return Network(self.image_shape_, body, head, head.in_features)


class _Normalise(nn.Module):
    """Images less a mean, over a standard deviation, both by channel."""

    mean: Tensor
    sd: Tensor

    def __init__(self, mean: tuple[float, ...], sd: tuple[float, ...], channels: int) -> None:
        super().__init__()
        for name, values, none in (("mean", mean, 0.0), ("sd", sd, 1.0)):
            if values and (len(values) != channels or (name == "sd" and min(values) <= 0)):
                positive = " > 0" if name == "sd" else ""
                raise ValueError(
                    f"{name} must be () or {channels} numbers{positive}, one for each channel, got "
                    f"{tuple(values)}"
                )
            numbers = torch.tensor(values or [none] * channels, dtype=torch.float32)
            self.register_buffer(name, numbers.reshape(-1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        return (images - self.mean) / self.sd


# ------------------------------------------------------------------------------ files of weights


def find_weights(pattern: str, seed: Any) -> Path:
    """Return the one file that a pattern stands for, fetched where it is a published one."""
    wanted = pattern.replace(_SEED, str(seed))
    published = [name for name in FILES if fnmatch(name, wanted)]
    files = published or sorted(glob.glob(wanted))
    if len(files) != 1:
        raise ValueError(
            f"weights must be the path of one file, got {wanted!r}, which "
            f"{f'stands for {files}' if files else 'is not there'}; name a safetensors file, or "
            "one of a state dict"
        )
    return fetch(files[0]) if published else Path(files[0])


def _hashes(pattern: str) -> dict[str, str]:
    """Twelve hex digits of the SHA-256 of each file that a pattern stands for, of any seed."""
    wanted = pattern.replace(_SEED, "*")
    published = {name: str(f.sha256)[:12] for name, f in FILES.items() if fnmatch(name, wanted)}
    found = published or {name: sha256_of(Path(name))[:12] for name in sorted(glob.glob(wanted))}
    if not found:
        raise ValueError(
            f"weights must be the path of a file, got {pattern!r}, which is not there; paths are "
            "below the working directory"
        )
    return found


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file of weights by name; no code of the file runs."""
    remedy = "save it again: safetensors.torch.save_file(module.state_dict(), path)"
    try:
        if path.suffix == ".safetensors":
            content: Any = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except SafetensorError as error:
        raise ValueError(f"weights: {str(path)!r} is no safetensors file ({error})") from error
    except Exception as error:  # torch.load raises errors of many types
        reason = str(error).partition("\n")[0]
        raise ValueError(
            f"weights: {str(path)!r} cannot be read as a state dict ({reason}); {remedy}"
        ) from error
    content = content.get("state_dict", content) if isinstance(content, Mapping) else content
    if not isinstance(content, Mapping) or not all(isinstance(t, Tensor) for t in content.values()):
        raise ValueError(f"weights: {str(path)!r} must hold tensors by name; {remedy}")
    wrapped = all(name.startswith(_PREFIX) for name in content)
    return {name.removeprefix(_PREFIX) if wrapped else name: t for name, t in content.items()}


def load_weights(
    module: nn.Module, weights: Mapping[str, Tensor], where: str, architecture: str
) -> None:
    """Load weights into a module; ValueError that says what differs if they are of another one."""
    own = {name: tuple(t.shape) for name, t in module.state_dict().items()}
    given = {name: tuple(t.shape) for name, t in weights.items()}
    missing = [name for name in own if name not in given and not name.endswith(_COUNTER)]
    unknown = [name for name in given if name not in own]
    shapes = [
        f"{name} {given[name]} for {own[name]}"
        for name in own
        if name in given and own[name] != given[name]
    ]
    differences = {"lacks": missing, "has beyond it": unknown, "has other shapes": shapes}
    if any(differences.values()):
        texts = [
            f"{what} {', '.join(names[:_NAMED])}"
            + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
            for what, names in differences.items()
            if names
        ]
        raise ValueError(
            f"weights {where} are not of the architecture {architecture!r}: the file "
            f"{'; '.join(texts)}; name the architecture, and the options, that they were trained "
            "with"
        )
    module.load_state_dict(dict(weights), strict=False)
