"""Transformers: scalers, encoders, imputers, projections, selections and words."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from .. import checks as c
from ..functions import function_name
from ..objects import is_a
from .entry import WIDE, Entry

_SEEN = c.either(c.count(), c.number(), c.ints("d"), c.floats("d", least=0))
_MOST_COLUMNS = 1 << 20
_MOST_LETTERS, _MOST_DEGREE = 50, 100
#: Patterns that no text makes slow.
_PATTERNS = c.one_of(r"(?u)\b\w\w+\b", r"(?u)\b\w+\b", None)


def _polynomial_width(powers: Any, sizes: c.Sizes) -> None:
    """As many columns as there are powers: memory is taken by these numbers."""
    low, high, d = powers._min_degree, powers._max_degree, sizes["d"]
    c.need(0 <= low <= high <= _MOST_DEGREE and d <= _MOST_COLUMNS, "are of too high a degree")
    columns = _powers(powers, d, low, high)
    c.need(columns == powers.n_output_features_ <= _MOST_COLUMNS, f"make {columns} columns")
    every = _powers(powers, d, 0, high)
    c.need(every == powers._n_out_full <= _MOST_COLUMNS, f"make {every} columns")


def _powers(powers: Any, d: int, low: int, high: int) -> int:
    bias = int(powers.include_bias)
    if powers.interaction_only:
        return bias + sum(math.comb(d, i) for i in range(max(1, low), min(high, d) + 1))
    below = math.comb(d + low - 1, low - 1) - 1 if low else 0
    return bias + math.comb(d + high, high) - 1 - below


def _encoded_columns_fit(encoder: Any, sizes: c.Sizes) -> None:
    for categories in encoder.categories_:
        if categories.dtype.kind in "biuf":
            # Numbers are looked up by bisection: unsorted ones give columns that there are not.
            known = categories[~np.isnan(categories)]
            rising = len(categories) - len(known) <= 1 and (known[1:] > known[:-1]).all()
            c.need(rising, "have categories that are not sorted")
    if encoder._infrequent_enabled:
        grouped = (encoder._infrequent_indices, encoder._default_to_infrequent_mappings)
        for categories, rare, codes in zip(encoder.categories_, *grouped, strict=True):
            _rare_are_grouped(len(categories), rare, codes)
    dropped = getattr(encoder, "drop_idx_", None)
    if dropped is not None:
        for number_, categories in zip(dropped.tolist(), encoder.categories_, strict=True):
            c.need(number_ is None or 0 <= number_ < len(categories), "drop an absent category")
    if hasattr(encoder, "_n_features_outs"):
        # They are the width of a sparse matrix, whose columns nobody checks.
        c.need(encoder._n_features_outs == _encoded_widths(encoder), "have other columns")


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
        c.need(rare is None and codes is None, "group rare categories without codes")
        return
    c.need(len(rare) and rare.max() < n, "group categories that are absent")
    frequent = np.setdiff1d(np.arange(n), rare)
    expected = np.full(n, len(frequent))
    expected[frequent] = np.arange(len(frequent))
    c.need(np.array_equal(codes, expected), "have other codes for rare categories")


def _names_are_numbered(words: Any, sizes: c.Sizes) -> None:
    """Each word has a column of its own: the numbers go into a sparse matrix unchecked."""
    numbers = sorted(words.vocabulary_.values())
    c.need(numbers == list(range(len(numbers))), "have columns that are not 0, 1, 2, ...")
    weights = getattr(words, "_tfidf", None)
    if weights is not None and weights.use_idf:
        c.need(len(weights.idf_) == len(numbers), "have weights of other words")


def _patterns_are_known(selector: Any, sizes: c.Sizes) -> None:
    if selector.pattern is not None:
        c.need(re.fullmatch(r"[\w ^$.]*", selector.pattern), "have a pattern that may be slow")


def _function(value: Any, sizes: c.Sizes) -> None:
    c.need(function_name(value) is not None, f"is {value!r}, not one of the functions of a file")


_ANY = c.floats("d", finite=False)
_WORDS: dict[str, c.Check] = {
    "input": c.one_of("content"),
    "preprocessor tokenizer": c.one_of(None),
    "analyzer": c.one_of("word", "char", "char_wb"),
    "token_pattern": _PATTERNS,
    "ngram_range": c.fields(c.number(1, _MOST_LETTERS), c.number(1, _MOST_LETTERS)),
}
_COUNTED = {"vocabulary_": c.mapping(c.text, c.count()), "fixed_vocabulary_": c.flag}
#: A number in memory, which differs from run to run.
_ADDRESS = frozenset({"_stop_words_id"})
_BINS = c.either(c.each(c.values("*"), "d"), c.grid(c.floats("*"), "d"))
_ENCODER = WIDE | {"categories_": c.each(c.values("*"), "d"), "_infrequent_enabled": c.flag}
_RARE: dict[str, c.Check] = {
    "_infrequent_indices": c.each(c.maybe(c.ints("*", least=0)), "d"),
    "_default_to_infrequent_mappings": c.each(c.maybe(c.ints("*")), "d"),
}
_GAPS = {"indicator_": c.maybe(is_a("sklearn.impute.MissingIndicator", d="d"))}
_PROJECTION = WIDE | {"components_": c.floats("c", "d")}
_SPECTRUM = _PROJECTION | {
    "explained_variance_ explained_variance_ratio_ singular_values_": c.floats("c")
}
_COMPONENTS = _SPECTRUM | {"mean_": c.floats("d"), "n_components_": c.count("c")}
_SCORERS = Entry(
    WIDE | {"scores_": _ANY}, {"pvalues_": c.maybe(_ANY)}, parameters={"score_func": _function}
)
_TEXT = "sklearn.feature_extraction.text"

ENTRIES: dict[str, Entry] = {
    "sklearn.preprocessing.StandardScaler": Entry(
        WIDE | {"mean_ var_ scale_": c.maybe(_ANY)}, {"n_samples_seen_": _SEEN}
    ),
    "sklearn.preprocessing.MinMaxScaler": Entry(
        WIDE | {"scale_ min_": _ANY},
        {"n_samples_seen_": _SEEN, "data_min_ data_max_ data_range_": _ANY},
    ),
    "sklearn.preprocessing.MaxAbsScaler": Entry(
        WIDE | {"scale_ max_abs_": _ANY}, {"n_samples_seen_": _SEEN}
    ),
    "sklearn.preprocessing.RobustScaler": Entry(WIDE | {"center_ scale_": c.maybe(_ANY)}),
    "sklearn.preprocessing.Normalizer": Entry({}),
    "sklearn.preprocessing.Binarizer": Entry({}),
    "sklearn.preprocessing.FunctionTransformer": Entry(
        {}, parameters={"func inverse_func": c.maybe(_function)}
    ),
    "sklearn.preprocessing.PowerTransformer": Entry(
        WIDE | {"lambdas_": _ANY}, {"_scaler": is_a("sklearn.preprocessing.StandardScaler", d="d")}
    ),
    "sklearn.preprocessing.QuantileTransformer": Entry(
        WIDE
        | {"n_quantiles_": c.count("q"), "references_": c.floats("q")}
        | {"quantiles_": c.floats("q", "d", finite=False)}
    ),
    "sklearn.preprocessing.PolynomialFeatures": Entry(
        WIDE | {"_min_degree _max_degree n_output_features_ _n_out_full": c.count()},
        where=(_polynomial_width,),
    ),
    "sklearn.preprocessing.OneHotEncoder": Entry(
        _ENCODER,
        _RARE
        | {"drop_idx_ _drop_idx_after_grouping": c.maybe(c.values("d"))}
        | {"_n_features_outs": c.each(c.count(), "d")},
        where=(_encoded_columns_fit,),
    ),
    "sklearn.preprocessing.OrdinalEncoder": Entry(
        _ENCODER, _RARE | {"_missing_indices": c.plain}, where=(_encoded_columns_fit,)
    ),
    "sklearn.preprocessing.KBinsDiscretizer": Entry(
        WIDE | {"bin_edges_": _BINS, "n_bins_": c.ints("d", least=1)},
        {"_encoder": is_a("sklearn.preprocessing.OneHotEncoder", d="d")},
    ),
    "sklearn.preprocessing.LabelEncoder": Entry({"classes_": c.values("k")}),
    "sklearn.preprocessing.LabelBinarizer": Entry(
        {"classes_": c.labels(), "y_type_": c.text, "sparse_input_": c.flag}
    ),
    "sklearn.impute.SimpleImputer": Entry(
        WIDE | {"statistics_": c.either(_ANY, c.values("d", kinds="biUSOM"))},
        _GAPS | {"_fit_dtype _fill_dtype": c.plain},
        parameters={"strategy": c.one_of("mean", "median", "most_frequent", "constant")},
    ),
    "sklearn.impute.MissingIndicator": Entry(
        {"features_": c.ints("*", least=0, below="d"), "_n_features n_features_in_": c.count("d")}
        | {"_precomputed": c.flag}
    ),
    "sklearn.impute.KNNImputer": Entry(
        WIDE
        | {"_fit_X": c.floats("n", "d", finite=False), "_mask_fit_X": c.bools("n", "d")}
        | {"_valid_mask": c.bools("d")},
        _GAPS,
        parameters={
            "metric": c.one_of("nan_euclidean"),
            "weights": c.one_of("uniform", "distance"),
        },
    ),
    "sklearn.decomposition.PCA": Entry(
        _COMPONENTS,
        {"noise_variance_": c.number(), "n_samples_": c.count(), "n_features_": c.count("d")}
        | {"_fit_svd_solver": c.text},
    ),
    "sklearn.decomposition.IncrementalPCA": Entry(
        _COMPONENTS,
        {"var_": c.floats("d"), "noise_variance_ n_samples_seen_": c.number()}
        | {"batch_size_": c.count()},
    ),
    "sklearn.decomposition.TruncatedSVD": Entry(_SPECTRUM),
    "sklearn.decomposition.FastICA": Entry(
        _PROJECTION,
        {"mean_": c.floats("d"), "whitening_": c.floats("c", "d"), "mixing_": c.floats("d", "c")}
        | {"_unmixing": c.floats("c", "c"), "n_iter_": c.count()},
    ),
    "sklearn.decomposition.FactorAnalysis": Entry(
        _PROJECTION | {"mean_ noise_variance_": c.floats("d")},
        {"loglike_": c.plain, "n_iter_": c.count()},
    ),
    "sklearn.kernel_approximation.RBFSampler": Entry(
        WIDE | {"random_weights_": c.floats("d", "c"), "random_offset_": c.floats("c")},
        {"_gamma": c.number(), "_n_features_out": c.count("c")},
    ),
    "sklearn.feature_selection.VarianceThreshold": Entry(WIDE | {"variances_": _ANY}),
    "sklearn.feature_selection.SelectKBest": _SCORERS,
    "sklearn.feature_selection.SelectPercentile": _SCORERS,
    f"{_TEXT}.CountVectorizer": Entry(
        _COUNTED, parameters=_WORDS, where=(_names_are_numbered,), dropped=_ADDRESS
    ),
    f"{_TEXT}.TfidfVectorizer": Entry(
        _COUNTED | {"_tfidf": is_a(f"{_TEXT}.TfidfTransformer")},
        parameters=_WORDS,
        where=(_names_are_numbered,),
        dropped=_ADDRESS,
    ),
    f"{_TEXT}.TfidfTransformer": Entry(WIDE, {"idf_": c.floats("d")}),
    f"{_TEXT}.HashingVectorizer": Entry(
        {}, parameters=_WORDS | {"n_features": c.number(1, _MOST_COLUMNS)}
    ),
    "sklearn.compose.make_column_selector": Entry(
        {"pattern": c.maybe(c.text), "dtype_include dtype_exclude": c.plain},
        where=(_patterns_are_known,),
        bare=True,
    ),
}
