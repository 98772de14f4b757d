"""The models that the theory of evidential learning starts from."""

from .icd import covariate_indexed_posterior, icd_posterior, icd_predictive

__all__ = ["covariate_indexed_posterior", "icd_posterior", "icd_predictive"]
