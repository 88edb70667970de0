"""The portal as a Django application."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """Pages, API and live channels."""

    name = "portal"

    def ready(self) -> None:
        """Register the settings' sanity checks."""
        from portal import checks  # noqa: F401, PLC0415 - registers by import
