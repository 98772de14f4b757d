"""Settings of a service: limits, the token, what is logged."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Limits and secrets of a service.

    Parameters
    ----------
    token : str, default=""
        What each request must bring as ``Authorization: Bearer ...``; "" asks for none.
    hosts : tuple of str, default=()
        Names by which requests may address the service, without ports; () allows any.
    body_bytes, rows : int
        Largest body and most rows of one request.
    explained : int
        Most rows of one request for explanations.
    seconds : float
        The longest time for the body of a request, and then for its answer.
    waiting : int
        Most requests with rows at a time; more are sent away.
    window : int, default=1000
        Answered rows after which their drift is looked at anew.
    log_inputs : bool, default=False
        Whether the log holds the rows of the requests.
    """

    token: str = field(default="", repr=False)
    hosts: tuple[str, ...] = ()
    body_bytes: int = 8 << 20
    rows: int = 10_000
    explained: int = 100
    seconds: float = 10.0
    waiting: int = 128
    window: int = 1000
    log_inputs: bool = False
