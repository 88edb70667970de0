"""How fast classes of jobs run on flavors, as admins said and as runs have shown."""

from django.db.models import Exists, OuterRef, QuerySet

from scheduler.models import LearntThroughput, Throughput
from scheduler.models.throughputs import THROUGHPUT_MOST
from tenants.models import Tenant, Viewer


def throughput_list() -> QuerySet[Throughput]:
    """Return what was said, by class and flavor; everybody may see it."""
    return Throughput.objects.order_by("job_class", "flavor")


def learnt_list(*, viewer: Viewer) -> QuerySet[LearntThroughput]:
    """Return what runs of tenants that the viewer may see have shown.

    `overruled` says that admins said something of the class, which counts instead.
    """
    said = Throughput.objects.filter(job_class=OuterRef("job_class"))
    return (
        LearntThroughput.objects.filter(tenant__in=Tenant.objects.visible_to(viewer))
        .select_related("tenant")
        .annotate(overruled=Exists(said))
        .order_by("tenant__slug", "job_class", "flavor")
    )


def own_class(job_class: str, tenant: str) -> str:
    """Return the name under which decisions know a tenant's class of which something was learnt.

    A class of jobs has no `@`: no user can name another tenant's.
    """
    return f"{job_class}@{tenant}"


def throughput_table() -> dict[tuple[str, str], float]:
    """Return (job class, flavor) -> throughput; what was learnt under its tenant's own class.

    Of a class of which admins said anything nothing learnt counts, as the two might differ in what
    they compare with. `THROUGHPUT_MOST` rows of either kind at most.
    """
    rows = throughput_list().values_list("job_class", "flavor", "throughput")[:THROUGHPUT_MOST]
    table = {(job_class, flavor): value for job_class, flavor, value in rows}
    said = {job_class for job_class, _ in table}
    columns = ("job_class", "tenant__slug", "flavor", "throughput")
    learnt = LearntThroughput.objects.order_by("-last_run_at", "pk").values_list(*columns)
    for job_class, tenant, flavor, value in learnt[:THROUGHPUT_MOST]:
        if job_class not in said:
            table[own_class(job_class, tenant), flavor] = value
    return table
