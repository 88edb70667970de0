"""The table of jobs."""

import django_tables2 as tables
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.flavor_names import flavor_label
from portal.pages.amounts import cpu_text, devices_text, memory_text
from scheduler.models import Job


def _labelled(label: str | Promise) -> dict[str, dict[str, str | Promise]]:
    """Return the attributes of a column whose cells name themselves on a narrow page."""
    return {"td": {"data-label": label}}


class JobTable(tables.Table):
    """One row a job; the page keeps the states live."""

    name = tables.TemplateColumn(
        template_name="pages/jobs_name.html",
        verbose_name=gettext_lazy("Job"),
        attrs=_labelled(gettext_lazy("Job")),
    )
    state = tables.TemplateColumn(
        template_name="pages/jobs_state.html",
        verbose_name=gettext_lazy("State"),
        attrs=_labelled(gettext_lazy("State")),
    )
    tenant = tables.Column(
        accessor="tenant__name",
        order_by="tenant__slug",
        verbose_name=gettext_lazy("Tenant"),
        attrs=_labelled(gettext_lazy("Tenant")),
    )
    cluster = tables.Column(
        accessor="cluster__slug",
        verbose_name=gettext_lazy("Cluster"),
        attrs=_labelled(gettext_lazy("Cluster")),
    )
    owner = tables.Column(
        accessor="owner__username",
        verbose_name=gettext_lazy("Owner"),
        attrs=_labelled(gettext_lazy("Owner")),
    )
    asks = tables.Column(
        accessor="devices",
        order_by=("devices", "cpu_milli"),
        verbose_name=gettext_lazy("Asks for"),
        attrs=_labelled(gettext_lazy("Asks for")),
    )
    submitted_at = tables.TemplateColumn(
        template_name="pages/jobs_when.html",
        verbose_name=gettext_lazy("Submitted"),
        attrs=_labelled(gettext_lazy("Submitted")),
    )

    class Meta:
        model = Job
        fields = ("name", "state", "tenant", "cluster", "owner", "asks", "submitted_at")
        order_by = "-submitted_at"
        attrs = {"class": "table table-vcenter card-table k-jobs k-stack"}
        row_attrs = {"data-job": lambda record: str(record.pk)}
        empty_text = ""

    def render_asks(self, record: Job) -> str:
        """Return what the whole job asks for, in one short line."""
        return asks(record)


def asks(job: Job) -> str:
    """Return what a job asks for: replicas times devices, cores and memory."""
    parts = []
    if job.devices:
        count = devices_text(job.devices * job.gpu_milli)
        names = ", ".join(flavor_label(flavor) for flavor in job.flavors) or _("device")
        parts.append(f"{count} × {names}")
    parts += [cpu_text(job.cpu_milli), memory_text(job.memory_mib)]
    text = " · ".join(parts)
    return text if job.replicas_max == 1 else f"{job.replicas_max} × ({text})"
