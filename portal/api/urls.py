"""Every address of the API."""

from django.urls import include, path, re_path

from portal.api.v1.missing import Missing
from portal.api.v1.schema import DocsView, SchemaView

app_name = "api"
urlpatterns = [
    path("schema/", SchemaView.as_view(), name="schema"),
    path("docs/", DocsView.as_view(), name="docs"),
    path("v1/", include("portal.api.v1.urls")),
    re_path("", Missing.as_view(), name="missing"),
]
