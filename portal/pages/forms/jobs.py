"""What narrows the list of jobs; it stands in the address, so that a view can be sent to others."""

from collections.abc import Iterable
from typing import Any

import django_filters as filters
from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from scheduler.choices import JobKind, JobState
from scheduler.models import Job

TEXT_LIMIT = 200


class JobFilter(filters.FilterSet):
    """State, tenant, cluster, kind and text."""

    q = filters.CharFilter(
        method="narrow_by_text",
        label=_("Name or owner"),
        widget=forms.TextInput(
            attrs={"type": "search", "maxlength": TEXT_LIMIT, "placeholder": _("Name or owner")}
        ),
    )
    state = filters.MultipleChoiceFilter(
        choices=JobState.choices, label=_("State"), widget=forms.CheckboxSelectMultiple
    )
    tenant = filters.ChoiceFilter(
        field_name="tenant__slug", label=_("Tenant"), empty_label=_("All tenants")
    )
    cluster = filters.ChoiceFilter(
        field_name="cluster__slug", label=_("Cluster"), empty_label=_("All clusters")
    )
    kind = filters.ChoiceFilter(
        choices=JobKind.choices, label=_("Kind"), empty_label=_("All kinds")
    )
    mine = filters.BooleanFilter(
        method="narrow_to_mine", label=_("Mine"), widget=forms.CheckboxInput
    )

    class Meta:
        model = Job
        fields = ("q", "state", "tenant", "cluster", "kind", "mine")

    def __init__(
        self,
        *args: Any,
        tenants: Iterable[tuple[str, str]] = (),
        clusters: Iterable[tuple[str, str]] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.filters["tenant"].extra["choices"] = list(tenants)
        self.filters["cluster"].extra["choices"] = list(clusters)

    def narrow_by_text(self, jobs: QuerySet[Job], _name: str, value: str) -> QuerySet[Job]:
        """Return the jobs whose name or owner holds the text."""
        text = value.replace("\x00", "")[:TEXT_LIMIT]
        return jobs.filter(Q(name__icontains=text) | Q(owner__username__icontains=text))

    def narrow_to_mine(self, jobs: QuerySet[Job], _name: str, value: bool) -> QuerySet[Job]:
        """Return only the viewer's own jobs, where asked so."""
        return jobs.filter(owner_id=self.request.user.pk) if value else jobs
