"""Output of this package: files whole or not at all, a line of progress, HTML for a notebook."""

from .files import sha256_of, whole_file, write_file
from .finding import warn_caller
from .text import error_text, plain

__all__ = ["error_text", "plain", "sha256_of", "warn_caller", "whole_file", "write_file"]
