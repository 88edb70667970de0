"""Telemetry as a Django application."""

from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    """What exists and how busy it is."""

    name = "telemetry"
