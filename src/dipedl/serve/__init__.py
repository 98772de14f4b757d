"""Models behind HTTP: ``dipedl serve``, or `create_app` under a server of your own."""

from .app import create_app
from .models import Models
from .settings import Settings

__all__ = ["Models", "Settings", "create_app"]
