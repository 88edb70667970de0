"""Scheduler as a Django application."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    """Who gets what, where and when."""

    name = "scheduler"

    def ready(self) -> None:
        """Listen to the news of the lower apps."""
        from scheduler.listeners import subscribe  # noqa: PLC0415 - needs loaded models

        subscribe()
