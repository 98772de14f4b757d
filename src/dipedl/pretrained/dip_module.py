"""A trained network with a density of its features: a Dirichlet an input, in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Self

from torch import nn

from ..calibration.crossfit import IN_SAMPLE
from ..evidence import ZScore
from ..export.onnx_file import export_onnx
from ..nn.batches import Unpack, device_of
from ._decisions.kept_rows import KeptRows
from ._evidence_head import PASSTHROUGH, EvidenceHead
from ._feature_source import PENULTIMATE, FeatureSource
from ._file import read_module, write_module
from ._fit import Data, calibrate_parts, fit_parts
from ._fitted_module import FittedModule
from ._fusion import DENSITY, FUSED, Score, score_of
from ._training_mode import check_eval, checked_network, modal_modules
from .class_gaussians import ClassGaussians

__all__ = ["DIPModule"]


class DIPModule(FittedModule):
    r"""A trained classifier that knows where it has seen data; fit once, forward many.

    The network is frozen. One pass over its training data learns a density of its features, a
    temperature and a normaliser, and from then on each pass gives a Dirichlet over the classes,

    .. math:: \alpha(x) = \text{prior} + n \gamma \exp(z(x)) \, p(x),

    with z the normalised score of the features: `dipedl.DIPClassifier` for any ``nn.Module``.

    Parameters
    ----------
    network : nn.Module
        A trained classifier in eval mode. It gives logits (n, k), or an object or dict with
        ``logits`` (Hugging Face), or a tuple that begins with them. Its parameters get
        ``requires_grad=False``; a network in training mode is refused.
    features : "penultimate", str, sequence of str, or callable, default="penultimate"
        What the density sees. "penultimate": the input of the last ``nn.Linear`` that runs, found
        on the first batch; `describe` says which, and it must give the k logits (a network whose
        head is a convolution has none: name a layer). A string: the output of that module. A list:
        the outputs of several, side by side. A function ``features(network, *args, **kwargs)``
        gives (features, logits) and runs the network itself.
    pool : {"average", "max"}, optional
        How a map (n, channels, height, width) or a sequence (n, tokens, channels) becomes one row
        an input. None refuses them, but for a list, where it is "average". Padding of a sequence is
        pooled with the rest.
    density : ClassGaussians, optional
        Settings of the density; it is not changed itself. Default: ``ClassGaussians()``, a full
        covariance per class with OAS shrinkage.
    score : {"fused", "density"}, default="fused"
        What ranks inputs. "fused": the log-density and the network's own confidence, either of
        which may object, as `dipedl.density.FusedDensity` joins one density and the classifier.
        "density": the log-density alone, as the paper.
    prior, gamma, max_evidence, false_alarm_rate : optional
        As of `dipedl.DIPClassifier`.
    normalizer : normaliser, default=CautionBudget()
        One of `dipedl.evidence` that is affine or logistic in the score.
    calibrator : Temperature, "passthrough" or None, default=None
        How the probabilities are calibrated; None is ``Temperature()``.
    spread : `dipedl.calibration.Rehearsal`, optional
        Learns on ``calibration=`` rows how strong the Dirichlets may be: their means, vacuity and
        evidence stay, credible intervals hold what they promise. None: that of the evidence.
    classes : sequence, optional
        Names of the k classes, in the order of the logits. Default: 0..k-1.

    Attributes
    ----------
    network : nn.Module
        As given.
    density_ : ClassGaussians
        The density of the features.
    classes_ : ndarray, shape (k,)
        Names of the classes.
    n_ : float
        Rows that the density learned from.
    spread_ : Rehearsal or None
        The fitted `spread`.
    offset_ : float
        Score below which `predict_ood` flags an input.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as above; lists the modules where a layer does not exist.

    Notes
    -----
    All that is learned is in buffers: ``state_dict`` goes into an unfitted module of the same
    settings, ``.to(device)`` moves it, ``torch.compile`` and ``torch.export`` take it as it is. For
    a dynamic batch give ``torch.export`` the inputs by position: it knows no dynamic shapes of
    ``**kwargs``. A network that was compiled before is refused: compile the whole.
    ``.half()`` and ``.bfloat16()`` convert the network alone. ``.train()`` never puts the network
    into training mode. The layer is captured by a hook that lives as long as this module, keeps
    something only during its own passes, and adds no attribute to the network.

    References
    ----------
    Carlotti, Gligić, Farahi, "Density-Informed Pseudo-Counts for Calibrated Evidential Deep
    Learning", Definition 3.1. Mukhoti, Kirsch, van Amersfoort, Torr, Gal, "Deep deterministic
    uncertainty: a new simple baseline", CVPR (2023), on the density of features.

    Examples
    --------
    >>> import torch
    >>> from dipedl.pretrained import DIPModule
    >>> X = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    >>> y = (X[:, 0] > 0).long()
    >>> network = torch.nn.Linear(2, 2)
    >>> _ = network.weight.data.copy_(torch.tensor([[-4.0, 0.0], [4.0, 0.0]]))
    >>> model = DIPModule(network).fit_density([(X, y)])
    >>> model(torch.tensor([[1.0, 0.0], [30.0, 0.0]])).vacuity.round(decimals=2)
    tensor([0.0100, 1.0000])
    >>> model.predict_ood(torch.tensor([[1.0, 0.0], [30.0, 0.0]]))
    tensor([ 1, -1])
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        features: str | Sequence[str] | Callable[..., Any] = PENULTIMATE,
        pool: str | None = None,
        density: ClassGaussians | None = None,
        score: str = FUSED,
        prior: Any = 1.0,
        gamma: float = 1.0,
        max_evidence: float | None = None,
        normalizer: Any = None,
        calibrator: Any = None,
        spread: Any = None,
        false_alarm_rate: float = 0.05,
        classes: Sequence[Any] | None = None,
    ) -> None:
        super().__init__()
        self.network = checked_network(network)
        self.source = FeatureSource(network, features, pool)
        self.density_ = ClassGaussians() if density is None else _checked_density(density).blank()
        self.fusion = score_of(score, self.density_.dtype)
        self.head = EvidenceHead(
            prior=prior,
            gamma=gamma,
            max_evidence=max_evidence,
            normalizer=normalizer,
            calibrator=calibrator,
            spread=spread,
            false_alarm_rate=false_alarm_rate,
            dtype=self.density_.dtype,
        )
        self.kept = KeptRows()
        self.features, self.pool, self.score = features, pool, score
        self.classes = None if classes is None else list(classes)
        self._held_out: float | str = 0.1
        self._modal = modal_modules(network)
        network.requires_grad_(False)
        self.fusion.to(device_of(network))
        self.head.to(device_of(network))

    @classmethod
    def paper(
        cls,
        network: nn.Module,
        *,
        features: str | Sequence[str] | Callable[..., Any] = PENULTIMATE,
        pool: str | None = None,
        gamma: float = 1.0,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """The released behaviour: full, unshrunk covariances, z-scored on the training rows.

        `fit_density` then reads the loader twice: once for the density, once for its scores. The
        choices are those of `dipedl.DIPClassifier.paper`.
        """
        module = cls(
            network,
            features=features,
            pool=pool,
            density=ClassGaussians(shrinkage=None),
            score=DENSITY,
            gamma=gamma,
            normalizer=ZScore(),
            calibrator=PASSTHROUGH,
            classes=classes,
        )
        module._held_out = IN_SAMPLE
        return module

    def fit_density(
        self,
        loader: Any,
        *,
        calibration: Any = None,
        held_out: float | int | str | None = None,
        unpack: Unpack | None = None,
        group: Any = None,
    ) -> Self:
        """Learn density, temperature, normaliser and threshold in one pass over a loader.

        Parameters
        ----------
        loader : iterable of batches
            Training data: ``(inputs, labels)``, where inputs is a tensor, a tuple of positional or
            a dict of keyword arguments of the network; or a dict of keyword arguments with
            "labels", "label", "y", "target" or "targets" in it. Labels are class indices (b,).
            Tensors go to the device of the network.
        calibration : iterable of batches, optional
            Held-out data, which the network was not trained on, for all that is learned from scores
            and probabilities. The right choice for a network: on its own training rows it is surer
            than elsewhere, so that temperature and caution come out too small.
        held_out : float, int or "in-sample", optional
            Without `calibration`: the share of the rows of `loader` (at most 5,000) that the
            density does not see, or an int, at most that many and at least half as many of them.
            Spread evenly by their place. "in-sample": the rows of the density, read a second time.
            Default: 0.1, or "in-sample" for a module made by `paper`.
        unpack : callable, optional
            ``unpack(batch) -> (inputs, labels)`` for batches of another form.
        group : "world" or ProcessGroup, optional
            Processes of ``torch.distributed`` that each read a part of the data and end with the
            same module. None is this process alone, even where others run.

        Raises
        ------
        ValueError
            If the network is in training mode or gives probabilities in place of logits; the loader
            is empty or has no labels; a feature is not finite (names batch and row); labels do not
            fit the logits; a class has no row; a covariance is singular.
        TypeError
            If a batch or what the network gives is not understood; says what to pass.
        MemoryError
            If a batch does not fit on the device; names the batch size to try.
        """
        check_eval(self._modal)
        held = self._held_out if held_out is None else held_out
        device = device_of(self.network)
        data = Data(loader, calibration, held, unpack, group, device)
        density, fusion, head = self.density_.blank(), self.fusion.blank(), deepcopy(self.head)
        kept = fit_parts(self.source, density, fusion, head, data, self.classes)
        # What scores is kept, and not the moments it came from.
        scorer = density.blank()
        scorer.load_state_dict(density.state_dict(), assign=True)
        return self._with(scorer, fusion, head, kept)

    def calibrate(
        self, calibration: Any, *, unpack: Unpack | None = None, group: Any = None
    ) -> Self:
        """Learn all that comes from held-out rows again; network and density stay.

        Parameters
        ----------
        calibration, unpack, group
            As for `fit_density`.
        """
        self._check_fitted()
        check_eval(self._modal)
        device, fusion, head = device_of(self.network), self.fusion.blank(), deepcopy(self.head)
        data = Data((), calibration, self._held_out, unpack, group, device)
        kept = calibrate_parts(self.source, self.density_, fusion, head, data)
        return self._with(self.density_, fusion, head, kept)

    def _with(
        self, density: ClassGaussians, fusion: Score, head: EvidenceHead, kept: KeptRows
    ) -> Self:
        device = density.origin.device
        parts = {"density_": density, "fusion": fusion.to(device), "head": head.to(device)}
        # At once, and after all that may fail: another thread sees the parts of before, or these.
        self._modules = self._modules | parts | {"kept": kept}
        return self._warned()

    def save(self, path: str | Path, *, weights: bool = True) -> None:
        """Write the fitted module to one safetensors file, without pickle.

        Parameters
        ----------
        path : str or Path
            The file; one that is there survives any failure.
        weights : bool, default=True
            Whether the weights of the network go into the file. Without them `load` wants a network
            that has the very same ones.

        Raises
        ------
        NotFittedError
            Before `fit_density`.
        TypeError
            If `features` is a function, or a part is of a type that is not ours.
        OSError
            If the file cannot be written.
        """
        self._check_fitted()
        write_module(self, Path(path), weights=weights)

    @classmethod
    def load(cls, path: str | Path, network: nn.Module) -> Self:
        """The module that `save` wrote, around a network of the same structure.

        Parameters
        ----------
        path : str or Path
            The file.
        network : nn.Module
            Built by the same code, in eval mode, on the device wanted. It gets the weights of the
            file, if they are in it.

        Raises
        ------
        ValueError
            If the file is damaged or no `DIPModule`, or the network does not fit it.
        """
        found: Self = read_module(cls, Path(path), network)
        return found

    def export_onnx(self, path: str | Path, example: Any, **options: Any) -> None:
        """Write network, density and evidence as one ONNX graph; see `dipedl.export.export_onnx`.

        Parameters
        ----------
        path : str or Path
            The file.
        example : Any
            A batch the network takes: a tensor, a tuple of positional or a dict of keyword
            arguments.
        **options
            Of `dipedl.export.export_onnx`.
        """
        export_onnx(self, path, example=example, **options)


def _checked_density(density: Any) -> ClassGaussians:
    if not isinstance(density, ClassGaussians):
        raise TypeError(
            "density must be a dipedl.pretrained.ClassGaussians, such as "
            f"ClassGaussians('tied'), got {type(density).__name__}"
        )
    return density
