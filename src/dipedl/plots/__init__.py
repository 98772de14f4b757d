"""Figures of uncertainty: functions of arrays, Axes in, Axes out; Displays that ask an estimator.

Without `ax` each draws on a new `matplotlib.figure.Figure` of its own, never on pyplot's
global state: pass ``ax=plt.gca()`` to work with pyplot, or take ``.figure`` of what comes back and
``savefig`` it. Nothing is shown but by a notebook, where a Display at the end of a cell is its
picture. Matplotlib is imported on the first call.
"""

from .._plugins import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
