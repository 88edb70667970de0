"""The portal as a Django application."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """Pages, API and live channels."""

    name = "portal"

    def ready(self) -> None:
        """Register the settings' sanity checks, and the broker that tasks are sent to."""
        from portal import celery, checks  # noqa: F401, PLC0415 - both register by import
