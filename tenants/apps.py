"""Tenants as a Django application."""

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    """Who may have what."""

    name = "tenants"
