"""Numbers of a user's columns as text."""


def number_text(value: float) -> str:
    """Four digits; whole numbers from 10,000 to ten million in full, as prices and counts are read.

    Examples
    --------
    >>> number_text(3.14159), number_text(30900.0), number_text(3e8)
    ('3.142', '30900', '3e+08')
    """
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
