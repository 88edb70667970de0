"""Scheduler as a Django application."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    """Who gets what, where and when."""

    name = "scheduler"
