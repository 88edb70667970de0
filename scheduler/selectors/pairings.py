"""How fast classes of jobs run beside each other, as admins said."""

from django.db.models import QuerySet

from scheduler.core.interference import Pairs
from scheduler.models import Pairing


def pairing_list() -> QuerySet[Pairing]:
    """Return what was said, by classes; everybody may see it."""
    return Pairing.objects.order_by("class_a", "class_b")


def pairing_table() -> Pairs:
    """Return (class, class) -> throughput of the first and of the second beside each other."""
    columns = ("class_a", "class_b", "throughput_a", "throughput_b")
    return {(a, b): (of_a, of_b) for a, b, of_a, of_b in pairing_list().values_list(*columns)}
