"""How fast classes of jobs run on flavors, as admins said."""

from django.db.models import QuerySet

from scheduler.models import Throughput
from scheduler.models.throughputs import THROUGHPUT_MOST


def throughput_list() -> QuerySet[Throughput]:
    """Return what was said, by class and flavor; everybody may see it."""
    return Throughput.objects.order_by("job_class", "flavor")


def throughput_table() -> dict[tuple[str, str], float]:
    """Return (job class, flavor) -> throughput, `THROUGHPUT_MOST` rows at most."""
    rows = throughput_list().values_list("job_class", "flavor", "throughput")
    return {(job_class, flavor): value for job_class, flavor, value in rows[:THROUGHPUT_MOST]}
