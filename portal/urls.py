"""Every address of the portal."""

from django.urls import include, path

from portal.health import healthz, readyz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("i18n/", include("django.conf.urls.i18n")),
    path("accounts/", include("portal.accounts.urls")),
    path("api/", include("portal.api.urls")),
    path("", include("portal.pages.urls")),
]
