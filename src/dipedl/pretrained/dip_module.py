"""A trained network with a density of its features: a Dirichlet an input, in one pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from functools import partial, wraps
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from scipy import special
from sklearn.exceptions import NotFittedError
from torch import Tensor, distributed, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from ..answers import Decisions, snapshot_of
from ..calibration.crossfit import AUTO, ENOUGH, IN_SAMPLE, row_hash
from ..calibration.spread import Spread
from ..dirichlet import Dirichlet
from ..evidence import ZScore
from ..evidence_model import EvidenceModel
from ..held_out import (
    FEWEST_ROWS,
    MOST_ROWS,
    Origin,
    less_sure_between,
    sample_hashes,
    share_in_fit,
    warn_of_held_out_rows,
)
from ..inputs import PRIOR, prior_vector
from ..maths.arrays import on_simplex, to_numpy
from ..networks.batches import (
    Unpack,
    as_call,
    device_of,
    map_tensors,
    move_tensors,
    tensors,
)
from .class_gaussians import ClassGaussians, check_features, keep_precision
from .evidence_head import DENSITY, FUSED, PASSTHROUGH, DirichletOutput, EvidenceHead, blank_score
from .features import PENULTIMATE, FeatureSource, Rows, list_shapes, network_errors, read_rows
from .held_out_rows import HELD_OUT_SHARE, HeldOutRows, HoldOut, spread_evenly

__all__ = ["DIPModule"]

_T = TypeVar("_T")

#: The modules of torch.nn that look at ``self.training``.
_MODAL = (_NormBase, _DropoutNd, nn.RReLU, nn.MultiheadAttention, nn.RNNBase)
_FITTED = ("classes_", "n_", "offset_", "evidence_", "spread_")
_NOT_FITTED = (
    "this DIPModule is not fitted; call fit_density(loader) with the training data of the network, "
    "or load_state_dict"
)


def _of_call(method: Callable[..., Any]) -> Any:
    """Return a method of one batch X that also takes X apart, as the network itself does."""
    options = list(inspect.signature(method).parameters)[2:]

    @wraps(method)
    def answer(self: Any, *args: Any, **kwargs: Any) -> Any:
        named = {name: kwargs.pop(name) for name in options if name in kwargs}
        if not args and list(kwargs) == ["X"]:
            args = (kwargs.pop("X"),)
        # What holds no tensor and follows a batch is options by their position.
        parts = 1 if not kwargs and not any(True for _ in tensors(args[1:])) else len(args)
        inputs = as_call(self.source.call, *args[:parts], **kwargs)
        return method(self, inputs, *args[parts:], **named)

    return answer


class DIPModule(Decisions, nn.Module):
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
        What ranks inputs. "fused": the log-density, and how far the largest logit lies above the
        mean of all; either may object, by the formula of `dipedl.density.FusedDensity`. "density":
        the log-density alone, as the paper.
    prior : float or array-like, shape (k,), default=0.5
        Concentration of the prior, > 0: what predictions return to. A number is that of each class;
        class frequencies go in as an array, times k / 2.
    gamma, max_evidence, false_alarm_rate : optional
        As of `dipedl.DIPClassifier`.
    caution : float in [0, 1], default=0.02
        As of `dipedl.DIPClassifier`.
    normalizer : normaliser, optional
        One of `dipedl.evidence` that is affine or logistic in the score, in place of `caution`.
    calibrator : Temperature, "passthrough" or None, default=None
        How the probabilities are calibrated; None is ``Temperature()``.
    spread : "auto" or None, default="auto"
        "auto" learns on ``calibration=`` rows how strong the Dirichlets may be: means, vacuity and
        evidence stay, credible intervals hold what they promise. None, and "auto" without such
        rows: the strength is that of the evidence, intervals are often too narrow, and
        `dipedl.Dirichlet.credible_interval` warns (not of `paper`).
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
    spread_ : Spread or None
        The strength that the error on held-out rows supports.
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
    uncertainty: a new simple baseline", CVPR (2023), on the density of features. Hendrycks et al.,
    "Scaling out-of-distribution detection for real-world settings", ICML (2022), on the largest
    logit.

    Examples
    --------
    >>> import torch
    >>> from dipedl.pretrained import DIPModule
    >>> X = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    >>> y = (X[:, 0] > 0).long()
    >>> network = torch.nn.Linear(2, 2, bias=False)
    >>> _ = network.weight.data.copy_(torch.tensor([[-4.0, 0.0], [4.0, 0.0]]))
    >>> model = DIPModule(network).fit_density([(X, y)])
    >>> model(torch.tensor([[1.0, 0.0], [30.0, 0.0]])).vacuity.round(decimals=2)
    tensor([0., 1.])
    >>> model.predict_ood(torch.tensor([[1.0, 0.0], [30.0, 0.0]]))
    tensor([ 1, -1])
    """

    calibrated_by: ClassVar[str] = "module.calibrate(loader)"

    def __init__(
        self,
        network: nn.Module,
        *,
        features: str | Sequence[str] | Callable[..., Any] = PENULTIMATE,
        pool: str | None = None,
        density: ClassGaussians | None = None,
        score: str = FUSED,
        prior: Any = PRIOR,
        gamma: float = 1.0,
        max_evidence: float | None = None,
        caution: float | None = None,
        normalizer: Any = None,
        calibrator: Any = None,
        spread: Any = AUTO,
        false_alarm_rate: float = 0.05,
        classes: Sequence[Any] | None = None,
    ) -> None:
        super().__init__()
        self.network = _check_network(network)
        self.source = FeatureSource(network, features, pool)
        self.density_ = _blank_density(density)
        self.fusion = blank_score(score, self.density_.dtype)
        self.head = EvidenceHead(
            prior=prior,
            gamma=gamma,
            max_evidence=max_evidence,
            caution=caution,
            normalizer=normalizer,
            calibrator=calibrator,
            spread=spread,
            false_alarm_rate=false_alarm_rate,
            dtype=self.density_.dtype,
        )
        self.held_out = HeldOutRows()
        self.features, self.pool, self.score, self.spread = features, pool, score, spread
        self.classes = None if classes is None else list(classes)
        self._held_out: float | str = HELD_OUT_SHARE
        #: Modules that behave otherwise in training mode, or may: torch.nn did not write them.
        self._modal = [
            module
            for module in network.modules()
            if isinstance(module, _MODAL)
            or not type(module).__module__.startswith("torch.nn.modules")
        ]
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
            prior=1.0,
            gamma=gamma,
            normalizer=ZScore(),
            calibrator=PASSTHROUGH,
            spread=None,
            classes=classes,
        )
        module._held_out = IN_SAMPLE
        return module

    def fit_density(
        self,
        loader: Any,
        *,
        calibration: Any = None,
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
            than elsewhere, so that temperature and caution come out too small. Default: a tenth of
            the rows of `loader` (at most 5,000), spread evenly by their place, which the density
            does not see; for a module made by `paper` all rows, read a second time.
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
        self._check_eval()
        own: Origin = "in-sample" if self._held_out == IN_SAMPLE else "left out"
        origin: Origin = own if calibration is None else "given"
        if origin == "in-sample" and isinstance(loader, Iterator):
            raise ValueError(
                "loader is read twice (once for the density, once for its scores), and "
                f"{type(loader).__name__} can be read only once; pass a DataLoader or a list of "
                "batches"
            )
        split = HoldOut(HELD_OUT_SHARE, ENOUGH) if origin == "left out" else None
        group, read = process_group(group), self._reader(unpack)
        density = self.density_.blank()
        results = run_together(lambda: self._learn_density(density, loader, read, split), group)
        hashes, memorised = zip(*results, strict=True)
        density.finish(group).drop_moments()
        rows = (loader, "loader") if calibration is None else (calibration, "calibration")
        held_out = partial(read, *rows) if split is None else split.rows
        seen = sample_hashes(np.concatenate(hashes))
        return self._learn_evidence(density, held_out, origin, group, seen, all(memorised))

    def calibrate(  # type: ignore[override]
        self, calibration: Any, *, unpack: Unpack | None = None, group: Any = None
    ) -> Self:
        """Learn all that comes from held-out rows again; network and density stay.

        Parameters
        ----------
        calibration, unpack, group
            As for `fit_density`.
        """
        self._check_fitted()
        self._check_eval()
        group, read = process_group(group), self._reader(unpack)
        held_out = partial(read, calibration, "calibration")
        return self._learn_evidence(self.density_, held_out, "given", group)

    def _reader(self, unpack: Unpack | None) -> Callable[..., Iterator[Rows]]:
        """Return a function of a loader, its name and how many rows half-way it shall look at."""
        return partial(read_rows, self.source, unpack, device_of(self.network))

    def _learn_density(
        self,
        density: ClassGaussians,
        loader: Any,
        read: Callable[..., Iterator[Rows]],
        split: HoldOut | None,
    ) -> tuple[np.ndarray, bool]:
        """Take the rows of a loader into a density, but for those that are held out.

        Returns the smallest hashes of their features, and True if the network seems to know the
        rows by heart: it makes no error, or is less sure of the label half-way between two rows of
        a class.
        """
        hashes = np.empty(0, np.uint64)
        count, errors, pairs = 0, 0, list[tuple[np.ndarray, ...]]()
        for rows in read(loader, "loader", 0 if split is None else MOST_ROWS):
            k = rows.logits.shape[1]
            if self.classes is not None and len(self.classes) != k:
                raise ValueError(
                    f"classes must name the {k} classes of the network's logits, got "
                    f"{len(self.classes)} names"
                )
            prior_vector(self.head.settings.prior, k)
            for part in [rows] if split is None else split.split(rows):
                density.add(part.features, part.labels, k)
            if split is None:
                hashes = sample_hashes(np.concatenate([hashes, row_hash(to_numpy(rows.features))]))
            count += len(rows)
            errors += int((rows.logits.argmax(1) != rows.labels).sum())
            if rows.between is not None:
                at = rows.logits[: len(rows.between)].double(), rows.between.double()
                P, between = (to_numpy(logits.softmax(1)) for logits in at)
                pairs.append((P, between, rows.labels[: len(P)].cpu().numpy()))
        if split is None or count < FEWEST_ROWS:
            return hashes, False
        columns = [np.concatenate(parts) for parts in zip(*pairs, strict=True)]
        uneven = bool(columns) and len(columns[0]) >= FEWEST_ROWS and less_sure_between(*columns)
        return hashes, uneven or not errors

    def _learn_evidence(
        self,
        density: ClassGaussians,
        held_out: Callable[[], Iterable[Rows]],
        origin: Origin,
        group: Any,
        hashes: np.ndarray | None = None,
        memorised: bool = False,
    ) -> Self:
        """Learn score and evidence from the held-out rows of a density, then take all of them.

        `hashes` are the smallest of the features that the density has learned from, if known.
        """
        fusion, head = deepcopy(self.fusion), deepcopy(self.head)
        whole = head.needs_proba or fusion.needs_logits or origin != "in-sample"
        predictions = run_together(lambda: self._predictions(density, held_out, whole), group)
        columns = [np.concatenate(parts) for parts in zip(*chain(*predictions), strict=True)]
        # A score is one number, a row with logits k of them.
        places = spread_evenly(len(columns[0]), ENOUGH if whole else len(columns[0]))
        log_density, keys, *rest = (column[places] for column in columns)
        logits, labels, Z = (*rest, None, None, None)[:3]
        if origin == "given" and share_in_fit(keys, hashes):
            origin = "given twice"
        rows, parts = HeldOutRows(), log_density if fusion.needs_logits else None
        k, device = density.n_classes_, density.origin.device
        # Tensors made in inference mode could not be compiled or saved for a gradient later.
        with torch.inference_mode(False):
            scores = fusion.learn(log_density, logits)
            rows.take(scores, parts, logits, labels, origin, memorised)
            unseen = Z if origin.startswith("given") else None
            model = head.learn(rows.predictions(), unseen, n=density.n_, k=k)
        rows.set_model(model, density, self._class_names(k))
        modules = {"density_": density, "fusion": fusion.to(device), "head": head.to(device)}
        # At once, and after all that may fail: another thread sees the parts of before, or these.
        self._modules = self._modules | modules | {"held_out": rows}
        warn_of_held_out_rows(rows.predictions(), self)
        return self

    def _predictions(
        self, density: ClassGaussians, held_out: Callable[[], Iterable[Rows]], whole: bool
    ) -> list[tuple[np.ndarray, ...]]:
        """Return log-densities (m,) of held-out rows by batch, and hashes (m,) of their features.

        If `whole` also logits (m, k) and labels (m,), and for a spread the features (m, p).
        """
        parts, on_simplex_all = [], True
        for rows in held_out():
            on_simplex_all = on_simplex_all and bool(on_simplex(rows.logits).all())
            with torch.no_grad():
                scores = to_numpy(density(rows.features))
            Z = to_numpy(rows.features)
            rest = (to_numpy(rows.logits), rows.labels.cpu().numpy()) if whole else ()
            parts.append((scores, row_hash(Z), *rest, *([Z] if self.spread is not None else [])))
        if not parts:
            raise ValueError(
                f"none of the {density.n_:g} rows of the loader is held out, and thresholds need "
                "some; pass held-out data as calibration="
            )
        if on_simplex_all:
            raise ValueError(
                "the network must give logits, and gives probabilities: on all held-out rows its "
                "outputs lie in [0, 1] and sum to 1. Leave out the softmax at its end, or put a "
                "layer behind it that takes the log: log-probabilities are logits"
            )
        return parts

    def forward(self, *args: Any, **kwargs: Any) -> DirichletOutput:
        """Dirichlets of a batch, in one pass of the network.

        Parameters
        ----------
        *args, **kwargs
            What the network takes, or one batch of a loader: a dict is its keyword arguments, a
            tuple or list its positional ones.

        Returns
        -------
        DirichletOutput
            ``concentration`` (n, k), ``log_evidence`` (n,), ``mean`` (n, k) and ``vacuity`` (n,).
            An input that is NaN, or gives NaN features, is NaN throughout.
        """
        now = self.snapshot()
        output: DirichletOutput = now.head(*now.scores_and_logits(*args, **kwargs))
        return output

    def scores_and_logits(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Return scores (n,), and logits of the network (n, k)."""
        return self.snapshot()._run(*args, **kwargs)[1:]

    def _run(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return features (n, p), scores (n,) and logits (n, k)."""
        self._check_fitted()
        self._check_eval()
        inputs = as_call(self.source.call, *args, **kwargs)
        if torch.compiler.is_compiling():
            # A compiler follows no handlers, and a compiled graph raises what it likes.
            features, logits = self.source(*inputs.args, **inputs.kwargs)
        elif inputs.are_empty:
            # Many a network cannot reshape what has no rows.
            features = self.density_.origin.new_empty(0, self.density_.n_features_)
            logits = features.new_empty(0, self.density_.n_classes_)
        else:
            with network_errors(inputs, self.source):
                features, logits = self.source(*inputs.args, **inputs.kwargs)
                check_features(features, self.density_.n_features_)
                if logits.shape != (shape := (len(features), self.density_.n_classes_)):
                    raise ValueError(
                        f"logits must have a row for each of features and a column for each class, "
                        f"shape {shape}, got {tuple(logits.shape)}"
                    )
        return features, self.fusion(self.density_(features), logits), logits

    def score_samples(self, *args: Any, **kwargs: Any) -> Tensor:
        """Scores of a batch, higher is more typical, shape (n,).

        In standard deviations of held-out rows if fused, else the log-density in nats.
        """
        return self.scores_and_logits(*args, **kwargs)[0]

    def predict_dirichlet(self, *args: Any, **kwargs: Any) -> Dirichlet:
        """Return the Dirichlets of `forward` with every uncertainty, of tensors.

        An input whose score is NaN is refused by its row.
        """
        now = self.snapshot()
        scores, logits = now.scores_and_logits(*args, **kwargs)
        refuse_nan_scores(scores)
        return now.head.dirichlet(scores, logits, now.held_out.origin)

    # X is one batch as the network takes it: a tensor, a tuple of positional or a dict of keyword
    # arguments; or these arguments themselves, with the options of the method by name. One number
    # per input (or per class) comes as a tensor on the device of the density; names of classes
    # (`Rejection`, cards) come as numpy arrays.
    p_value = _of_call(Decisions.p_value)
    predict_set = _of_call(Decisions.predict_set)
    predict_with_reject = _of_call(Decisions.predict_with_reject)
    decide = _of_call(Decisions.decide)
    uncertainty = _of_call(Decisions.uncertainty)
    answers = _of_call(Decisions.answers)
    explain = _of_call(Decisions.explain)

    def predict_ood(  # type: ignore[override]
        self, *args: Any, alpha: float | None = None, by_class: bool = False, **kwargs: Any
    ) -> Tensor:
        """+1 for inputs like the training data, -1 where ``p_value <= alpha`` or is NaN, (n,).

        `alpha` is the share of ID inputs that may be flagged, default `false_alarm_rate`; of each
        class with `by_class`. The rest is what the network takes.
        """
        now = self.snapshot()
        scores = now.score_samples(*args, **kwargs)
        if alpha is None and by_class is False:
            return now.head.flags(scores)
        return torch.where(scores >= now.alarm_threshold(alpha, by_class), 1, -1)

    def describe(self) -> str:
        """The layer that the density sees, its shape, and how to take another."""
        lines = [f"features: {self.source.layers}"]
        if self.head.is_fitted:
            lines.append(f"shape: (n, {self.density_.n_features_})")
        lines.append("to take another: DIPModule(network, features='<module>', pool='average')")
        if self.source.shapes:
            lines.append(f"modules that ran, with shapes: {list_shapes(self.source.shapes)}")
        return "\n".join(lines)

    @property
    def classes_(self) -> np.ndarray:  # type: ignore[override]
        """Names of the classes, shape (k,)."""
        self._check_fitted()
        return self._class_names(len(self.head.prior))

    @property
    def n_(self) -> float:
        """Rows that the density learned from."""
        self._check_fitted()
        return float(self.density_.n_)

    @property
    def offset_(self) -> float:
        """Score below which `predict_ood` flags an input."""
        self._check_fitted()
        return float(self.head.offset)

    @property
    def false_alarm_rate(self) -> float:  # type: ignore[override]
        """Share of held-out ID inputs that `predict_ood` may flag."""
        return self.head.settings.false_alarm_rate

    @property
    def spread_(self) -> Spread | None:
        """The strength that was learned, on the host; None without one."""
        self._check_fitted()
        return None if self.head.strength is None else self.head.strength.spread()

    @property
    def evidence_(self) -> EvidenceModel:
        """The evidence side as `dipedl.DIPClassifier` has it, on the host and in float64."""
        self._check_fitted()
        rows = self.held_out
        if rows.model is None:
            n, k, numbers = self.n_, len(self.head.prior), rows.evidence.numpy()
            model = self.head.restore_evidence(rows.predictions(), numbers, n=n, k=k)
            rows.set_model(model, self.density_, self.classes_)
        result: EvidenceModel = rows.model
        return result

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
        from .file import write_module

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
        from .file import read_module

        module: Self = read_module(cls, Path(path), network)
        return module

    def export_onnx(self, path: str | Path, example: Any, **options: Any) -> None:
        """Write network, density and evidence as one ONNX graph; see `dipedl.io.onnx.export_onnx`.

        Parameters
        ----------
        path : str or Path
            The file.
        example : Any
            A batch the network takes: a tensor, a tuple of positional or a dict of keyword
            arguments.
        **options
            Of `dipedl.io.onnx.export_onnx`.
        """
        from ..io.onnx import export_onnx

        export_onnx(self, path, example=example, **options)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of this module; the network only ever goes to eval mode."""
        self.training = mode
        if not mode:
            self.network.eval()
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        for part in (self.source, self.density_, self.fusion, self.head):
            part._apply(keep_precision(fn), recurse)
        self.network._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __getattr__(self, name: str) -> Any:
        # NotFittedError is an AttributeError too: a property that raises it ends here.
        if name in _FITTED:
            raise NotFittedError(_NOT_FITTED)
        return super().__getattr__(name)

    def _check_fitted(self) -> None:
        if not (self.head.is_fitted and self.source.is_known):
            raise NotFittedError(_NOT_FITTED)

    def _check_eval(self) -> None:
        for module in self._modal:
            if module.training:
                raise ValueError(
                    f"network must be in eval mode, but its {type(module).__name__} is in training "
                    "mode, in which batch norm and dropout answer at random; call network.eval() "
                    "first"
                )

    def _class_names(self, k: int) -> np.ndarray:
        return np.arange(k) if self.classes is None else np.array(self.classes)

    def snapshot(self) -> Self:
        """Return the module with the attributes that it has now."""
        # A compiler has one state; the evidence stays with the rows that it was learned from.
        return self if torch.compiler.is_compiling() else snapshot_of(self)

    def predict_parts(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features (n, p), the network's probabilities (n, k) and scores (n,) of a batch."""
        self._check_fitted()
        inputs = as_call(self.source.call, move_tensors(X, self.density_.origin.device))
        with torch.no_grad():
            features, scores, logits = map(to_numpy, self._run(inputs))
        refuse_nan_scores(scores)
        return features, special.softmax(logits, axis=1), scores

    def some_inputs(self, X: Any, rows: np.ndarray) -> Any:
        """Return the inputs of a batch with these numbers (m,), as arguments of the network."""
        inputs, some = as_call(self.source.call, X), torch.from_numpy(rows)

        def pick(part: Tensor) -> Tensor:
            return part[some.to(part.device)] if part.shape[:1] == (inputs.rows,) else part

        return map_tensors(inputs, pick)

    def _as_answer(self, values: np.ndarray) -> Tensor:  # type: ignore[override]
        device = self.density_.origin.device
        tensor = torch.tensor(values, device="cpu")
        # Apple's GPUs have no float64.
        single = device.type == "mps" and tensor.is_floating_point()
        return (tensor.float() if single else tensor).to(device)


def refuse_nan_scores(scores: Any) -> None:
    """Raise ValueError if one of `scores` (n,) is NaN; names the first such row."""
    nan = scores != scores
    if bool(nan.any()):
        raise ValueError(
            f"X must not hold NaN, and row {int(nan.nonzero()[0].ravel()[0])} gives a score that "
            "is NaN; drop such inputs: predict_ood flags them"
        )


def _check_network(network: Any) -> nn.Module:
    """Return the network, if it is a module that was not compiled."""
    if not isinstance(network, nn.Module):
        raise TypeError(f"network must be a torch.nn.Module, got {type(network).__name__}")
    if hasattr(network, "_orig_mod"):
        raise TypeError(
            "network was compiled, and its layers can no longer be captured; wrap the network "
            "itself and compile the whole: torch.compile(DIPModule(network).fit_density(loader))"
        )
    return network


def _blank_density(density: Any) -> ClassGaussians:
    if density is None or isinstance(density, ClassGaussians):
        return ClassGaussians() if density is None else density.blank()
    raise TypeError(
        "density must be a dipedl.pretrained.ClassGaussians, such as ClassGaussians('tied'), got "
        f"{type(density).__name__}"
    )


def process_group(group: Any) -> Any:
    """Return the process group that was asked for; None for this process alone."""
    if group is None:
        return None
    if not (distributed.is_available() and distributed.is_initialized()):
        raise ValueError(
            f"group={group!r} was given, but torch.distributed is not initialised; call "
            "torch.distributed.init_process_group first, or leave group=None"
        )
    if isinstance(group, str) and group == "world":
        return distributed.group.WORLD
    if not isinstance(group, distributed.ProcessGroup):
        raise TypeError(f"group must be None, 'world' or a ProcessGroup, got {group!r}")
    return group


def run_together(step: Callable[[], _T], group: Any) -> list[_T]:
    """Return the results of a step in every process of a group, or of this one without a group.

    Where one process fails all raise, so that none waits for it.
    """
    if group is None:
        return [step()]
    result: _T | None = None
    failure: Exception | None = None
    try:
        result = step()
    except Exception as error:
        failure = error
    message = None if failure is None else f"{type(failure).__name__}: {failure}"
    results: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(results, (result, message), group=group)
    if failure is not None:
        raise failure
    failed = [f"rank {i}: {text}" for i, (_, text) in enumerate(results) if text]
    if failed:
        raise RuntimeError(f"fit_density failed in another process: {'; '.join(failed)}")
    return [result for result, _ in results]
