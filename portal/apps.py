"""The portal as a Django application."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """Pages, API and live channels."""

    name = "portal"

    def ready(self) -> None:
        """Register the settings' sanity checks, and Celery's application for whoever has news."""
        from portal import celery, checks  # noqa: F401, PLC0415 - both register by import
