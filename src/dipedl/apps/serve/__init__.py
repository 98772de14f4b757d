"""Models behind HTTP: ``dipedl serve``, or `create_app` under a server of your own."""

from .app import create_app
from .models import Models
from .pictures import Pictures
from .settings import Settings

__all__ = ["Models", "Pictures", "Settings", "create_app"]
