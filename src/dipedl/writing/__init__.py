"""Output of this package: files whole or not at all, a line of progress, HTML for a notebook."""

from .cells import error_text
from .files import sha256_of, whole_file, write_file
from .finding import warn_caller
from .numbers import plain

__all__ = ["error_text", "plain", "sha256_of", "warn_caller", "whole_file", "write_file"]
