"""Transformers: scalers, encoders, imputers, projections, selections and words."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from ..checks import (
    Check,
    Sizes,
    bools,
    count,
    each,
    either,
    fields,
    flag,
    floats,
    grid,
    ints,
    labels,
    maybe,
    need,
    number,
    one_of,
    plain,
    text,
    values,
)
from ..functions import function_name
from ..objects import is_a
from .entry import WIDE, Entry, settings_only

_SEEN = either(count(), number(), ints("d"), floats("d", least=0))
_MOST_COLUMNS = 1 << 20
_MOST_LETTERS, _MOST_DEGREE = 50, 100
#: Patterns that no text makes slow.
_PATTERNS = one_of(r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", None)


def _polynomial_width(powers: Any, sizes: Sizes) -> None:
    """As many columns as there are powers: memory is taken by these numbers."""
    low, high, d = powers._min_degree, powers._max_degree, sizes["d"]
    need(0 <= low <= high <= _MOST_DEGREE and d <= _MOST_COLUMNS, "are of too high a degree")
    columns = _powers(powers, d, low, high)
    need(columns == powers.n_output_features_ <= _MOST_COLUMNS, f"make {columns} columns")
    every = _powers(powers, d, 0, high)
    need(every == powers._n_out_full <= _MOST_COLUMNS, f"make {every} columns")


def _powers(powers: Any, d: int, low: int, high: int) -> int:
    bias = int(powers.include_bias)
    if powers.interaction_only:
        return bias + sum(math.comb(d, i) for i in range(max(1, low), min(high, d) + 1))
    below = math.comb(d + low - 1, low - 1) - 1 if low else 0
    return bias + math.comb(d + high, high) - 1 - below


def _encoded_columns_fit(encoder: Any, sizes: Sizes) -> None:
    for categories in encoder.categories_:
        if categories.dtype.kind in "biuf":
            # Numbers are looked up by bisection: unsorted ones give columns that there are not.
            known = categories[~np.isnan(categories)]
            rising = len(categories) - len(known) <= 1 and (known[1:] > known[:-1]).all()
            need(rising, "have categories that are not sorted")
    if encoder._infrequent_enabled:
        grouped = (encoder._infrequent_indices, encoder._default_to_infrequent_mappings)
        for categories, rare, codes in zip(encoder.categories_, *grouped, strict=True):
            _rare_are_grouped(len(categories), rare, codes)
    dropped = getattr(encoder, "drop_idx_", None)
    if dropped is not None:
        for number_, categories in zip(dropped.tolist(), encoder.categories_, strict=True):
            need(number_ is None or 0 <= number_ < len(categories), "drop an absent category")
    if hasattr(encoder, "_n_features_outs"):
        # They are the width of a sparse matrix, whose columns nobody checks.
        need(encoder._n_features_outs == _encoded_widths(encoder), "have other columns")


def _encoded_widths(encoder: Any) -> list[int]:
    """Columns for each feature: one per category, one for all rare ones, less one if dropped."""
    categories, dropped = encoder.categories_, encoder._drop_idx_after_grouping
    rare = encoder._infrequent_indices if encoder._infrequent_enabled else [None] * len(categories)
    dropped = [None] * len(categories) if dropped is None else dropped
    return [
        len(kept) - (0 if few is None else len(few) - 1) - (left_out is not None)
        for kept, few, left_out in zip(categories, rare, dropped, strict=True)
    ]


def _rare_are_grouped(n: int, rare: np.ndarray | None, codes: np.ndarray | None) -> None:
    """The codes of n categories: the frequent ones in order, then one for all rare ones."""
    if rare is None or codes is None:
        need(rare is None and codes is None, "group rare categories without codes")
        return
    need(len(rare) and rare.max() < n, "group categories that are absent")
    frequent = np.setdiff1d(np.arange(n), rare)
    expected = np.full(n, len(frequent))
    expected[frequent] = np.arange(len(frequent))
    need(np.array_equal(codes, expected), "have other codes for rare categories")


def _names_are_numbered(words: Any, sizes: Sizes) -> None:
    """Each word has a column of its own: the numbers go into a sparse matrix unchecked."""
    numbers = sorted(words.vocabulary_.values())
    need(all(isinstance(n, int | np.integer) for n in numbers), "have columns that are no numbers")
    need(numbers == list(range(len(numbers))), "have columns that are not 0, 1, 2, ...")
    weights = getattr(words, "_tfidf", None)
    if weights is not None and weights.use_idf:
        need(len(weights.idf_) == len(numbers), "have weights of other words")


def _vocabulary(value: Any, sizes: Sizes) -> None:
    need(type(value) is dict, "is not a dict")
    for word in value:
        need(isinstance(word, str), "holds a word that is no text")


def _short(value: Any, sizes: Sizes) -> None:
    fields(number(1, _MOST_LETTERS), number(1, _MOST_LETTERS))(value, sizes)


_WORDS: dict[str, Check] = {
    "input": one_of("content"),
    "preprocessor": one_of(None),
    "tokenizer": one_of(None),
    "analyzer": one_of("word", "char", "char_wb"),
    "token_pattern": _PATTERNS,
    "ngram_range": _short,
}
_COUNTED = {"vocabulary_": _vocabulary, "fixed_vocabulary_": flag}
#: A number in memory, which differs from run to run.
_ADDRESS = frozenset({"_stop_words_id"})
_BINS = either(each(values("*"), "d"), grid(floats("*"), "d"))
_ENCODER = WIDE | {"categories_": each(values("*"), "d"), "_infrequent_enabled": flag}
_RARE: dict[str, Check] = {
    "_infrequent_indices": each(maybe(ints("*", least=0)), "d"),
    "_default_to_infrequent_mappings": each(maybe(ints("*")), "d"),
}
_SPECTRUM = {
    name: floats("c")
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_")
}
_PROJECTION = WIDE | {"components_": floats("c", "d")}
_SCORED = {"scores_": floats("d", finite=False)}


def _function(value: Any, sizes: Sizes) -> None:
    need(function_name(value) is not None, f"is {value!r}, not one of the functions of a file")


_SCORERS = Entry(
    WIDE | _SCORED,
    {"pvalues_": maybe(floats("d", finite=False))},
    parameters={"score_func": _function},
)


def _patterns_are_known(selector: Any, sizes: Sizes) -> None:
    if selector.pattern is not None:
        need(re.fullmatch(r"[\w ^$.]*", selector.pattern), "have a pattern that may be slow")


ENTRIES: dict[str, Entry] = {
    "sklearn.preprocessing.StandardScaler": Entry(
        WIDE | {name: maybe(floats("d", finite=False)) for name in ("mean_", "var_", "scale_")},
        {"n_samples_seen_": _SEEN},
    ),
    "sklearn.preprocessing.MinMaxScaler": Entry(
        WIDE | {"scale_": floats("d", finite=False), "min_": floats("d", finite=False)},
        {"n_samples_seen_": _SEEN}
        | {name: floats("d", finite=False) for name in ("data_min_", "data_max_", "data_range_")},
    ),
    "sklearn.preprocessing.MaxAbsScaler": Entry(
        WIDE | {"scale_": floats("d", finite=False), "max_abs_": floats("d", finite=False)},
        {"n_samples_seen_": _SEEN},
    ),
    "sklearn.preprocessing.RobustScaler": Entry(
        WIDE | {name: maybe(floats("d", finite=False)) for name in ("center_", "scale_")}
    ),
    "sklearn.preprocessing.Normalizer": settings_only(),
    "sklearn.preprocessing.Binarizer": settings_only(),
    "sklearn.preprocessing.FunctionTransformer": settings_only(
        func=maybe(_function), inverse_func=maybe(_function)
    ),
    "sklearn.preprocessing.PowerTransformer": Entry(
        WIDE | {"lambdas_": floats("d", finite=False)},
        {"_scaler": is_a("sklearn.preprocessing.StandardScaler", d="d")},
    ),
    "sklearn.preprocessing.QuantileTransformer": Entry(
        WIDE
        | {
            "n_quantiles_": count("q"),
            "references_": floats("q"),
            "quantiles_": floats("q", "d", finite=False),
        }
    ),
    "sklearn.preprocessing.PolynomialFeatures": Entry(
        WIDE
        | {"_min_degree": count(), "_max_degree": count()}
        | {"n_output_features_": count(), "_n_out_full": count()},
        where=(_polynomial_width,),
    ),
    "sklearn.preprocessing.OneHotEncoder": Entry(
        _ENCODER,
        _RARE
        | {
            "drop_idx_": maybe(values("d")),
            "_drop_idx_after_grouping": maybe(values("d")),
            "_n_features_outs": each(count(), "d"),
        },
        where=(_encoded_columns_fit,),
    ),
    "sklearn.preprocessing.OrdinalEncoder": Entry(
        _ENCODER, _RARE | {"_missing_indices": plain}, where=(_encoded_columns_fit,)
    ),
    "sklearn.preprocessing.KBinsDiscretizer": Entry(
        WIDE | {"bin_edges_": _BINS, "n_bins_": ints("d", least=1)},
        {"_encoder": is_a("sklearn.preprocessing.OneHotEncoder", d="d")},
    ),
    "sklearn.preprocessing.LabelEncoder": Entry({"classes_": values("k")}),
    "sklearn.preprocessing.LabelBinarizer": Entry(
        {"classes_": labels(), "y_type_": text, "sparse_input_": flag}
    ),
    "sklearn.impute.SimpleImputer": Entry(
        WIDE | {"statistics_": either(floats("d", finite=False), values("d", kinds="biUSOM"))},
        {
            "indicator_": maybe(is_a("sklearn.impute.MissingIndicator", d="d")),
            "_fit_dtype": plain,
            "_fill_dtype": plain,
        },
        parameters={"strategy": one_of("mean", "median", "most_frequent", "constant")},
    ),
    "sklearn.impute.MissingIndicator": Entry(
        {"features_": ints("*", least=0, below="d"), "_n_features": count("d")}
        | {"n_features_in_": count("d"), "_precomputed": flag}
    ),
    "sklearn.impute.KNNImputer": Entry(
        WIDE
        | {
            "_fit_X": floats("n", "d", finite=False),
            "_mask_fit_X": bools("n", "d"),
            "_valid_mask": bools("d"),
        },
        {"indicator_": maybe(is_a("sklearn.impute.MissingIndicator", d="d"))},
        parameters={
            "metric": one_of("nan_euclidean"),
            "weights": one_of("uniform", "distance"),
        },
    ),
    "sklearn.decomposition.PCA": Entry(
        _PROJECTION | _SPECTRUM | {"mean_": floats("d"), "n_components_": count("c")},
        {
            "noise_variance_": number(),
            "n_samples_": count(),
            "_fit_svd_solver": text,
            "n_features_": count("d"),
        },
    ),
    "sklearn.decomposition.IncrementalPCA": Entry(
        _PROJECTION | _SPECTRUM | {"mean_": floats("d"), "n_components_": count("c")},
        {
            "var_": floats("d"),
            "noise_variance_": number(),
            "n_samples_seen_": number(),
            "batch_size_": count(),
        },
    ),
    "sklearn.decomposition.TruncatedSVD": Entry(_PROJECTION | _SPECTRUM),
    "sklearn.decomposition.FastICA": Entry(
        _PROJECTION,
        {
            "mean_": floats("d"),
            "whitening_": floats("c", "d"),
            "mixing_": floats("d", "c"),
            "_unmixing": floats("c", "c"),
            "n_iter_": count(),
        },
    ),
    "sklearn.decomposition.FactorAnalysis": Entry(
        _PROJECTION | {"mean_": floats("d"), "noise_variance_": floats("d")},
        {"loglike_": plain, "n_iter_": count()},
    ),
    "sklearn.kernel_approximation.RBFSampler": Entry(
        WIDE | {"random_weights_": floats("d", "c"), "random_offset_": floats("c")},
        {"_gamma": number(), "_n_features_out": count("c")},
    ),
    "sklearn.feature_selection.VarianceThreshold": Entry(
        WIDE | {"variances_": floats("d", finite=False)}
    ),
    "sklearn.feature_selection.SelectKBest": _SCORERS,
    "sklearn.feature_selection.SelectPercentile": _SCORERS,
    "sklearn.feature_extraction.text.CountVectorizer": Entry(
        _COUNTED, parameters=_WORDS, where=(_names_are_numbered,), dropped=_ADDRESS
    ),
    "sklearn.feature_extraction.text.TfidfVectorizer": Entry(
        _COUNTED | {"_tfidf": is_a("sklearn.feature_extraction.text.TfidfTransformer")},
        parameters=_WORDS,
        where=(_names_are_numbered,),
        dropped=_ADDRESS,
    ),
    "sklearn.feature_extraction.text.TfidfTransformer": Entry(
        WIDE, {"idf_": floats("d")}, where=()
    ),
    "sklearn.feature_extraction.text.HashingVectorizer": settings_only(
        **_WORDS, n_features=number(1, _MOST_COLUMNS)
    ),
    "sklearn.compose.make_column_selector": Entry(
        {"pattern": maybe(text), "dtype_include": plain, "dtype_exclude": plain},
        where=(_patterns_are_known,),
        bare=True,
    ),
}
