"""Figures of uncertainty: Axes in, Axes out.

Without `ax` a function draws on a new `matplotlib.figure.Figure` of its own, never on pyplot's
global state: pass ``ax=plt.gca()`` to work with pyplot, or take ``.figure`` of what comes back and
``savefig`` it. Nothing is shown, and matplotlib is imported on the first call.
"""

from .._plugins import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
