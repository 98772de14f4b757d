"""Models behind HTTP: ``dipedl serve``, or `create_app` under a server of your own."""

from ...protocols import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
