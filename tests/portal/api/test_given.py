"""What holds of throughputs and of pairs of classes alike: an admin gives them, row by row."""

from typing import Any

import pytest
from auditlog.models import LogEntry
from rest_framework.test import APIClient

from scheduler.models import Pairing, Throughput
from tests.portal.api.test_pairings import PATH as PAIRINGS
from tests.portal.api.test_pairings import ROW as PAIR
from tests.portal.api.test_throughputs import PATH as THROUGHPUTS
from tests.portal.api.test_throughputs import ROW
from tests.portal.world import World

Row = dict[str, Any]

TABLES: dict[str, tuple[Any, str, Row]] = {
    "throughputs": (Throughput, THROUGHPUTS, ROW),
    "pairings": (Pairing, PAIRINGS, PAIR),
}
each_table = pytest.mark.parametrize(("model", "path", "row"), TABLES.values(), ids=TABLES)


@each_table
def test_the_audit_names_who_said_it(
    root: APIClient, world: World, model: Any, path: str, row: Row
) -> None:
    root.post(path, row, format="json")
    entry = LogEntry.objects.get_for_model(model).get()
    assert entry.actor == world.root
    assert entry.changes["note"] == ["None", "measured in March"]


@each_table
def test_nobody_else_says_it(
    lead: APIClient, root: APIClient, model: Any, path: str, row: Row
) -> None:
    pk = root.post(path, row, format="json").json()["id"]
    assert lead.post(path, row, format="json").status_code == 403
    assert lead.delete(f"{path}{pk}/").status_code == 403
    assert lead.get(f"{path}{pk}/").status_code == 200
    assert model.objects.count() == 1


WRONG: dict[str, tuple[str, Row]] = {
    "a throughput of a class with a blank": ("throughputs", {"job_class": "l m"}),
    "a throughput of no class": ("throughputs", {"job_class": ""}),
    "a throughput of a class that is a list": ("throughputs", {"job_class": ["lm"]}),
    "a throughput on a flavor that does not exist": ("throughputs", {"flavor": "x"}),
    "a throughput of nothing at all": ("throughputs", {"throughput": 0}),
    "a throughput above the fastest": ("throughputs", {"throughput": 1.01}),
    "a throughput that is no number": ("throughputs", {"throughput": "0.5"}),
    "a throughput that is a truth": ("throughputs", {"throughput": True}),
    "a throughput with a note of two lines": ("throughputs", {"note": "a\nb"}),
    "a throughput with a long note": ("throughputs", {"note": "x" * 201}),
    "a throughput with a strange field": ("throughputs", {"speed": 1}),
    "a pair of a class with a blank": ("pairings", {"class_a": "l m"}),
    "a pair with no class": ("pairings", {"class_b": ""}),
    "a pair faster than alone": ("pairings", {"throughput_a": 1.01}),
    "a pair below nothing": ("pairings", {"throughput_b": -0.1}),
    "a pair with no number": ("pairings", {"throughput_a": "0.5"}),
    "a pair with a truth": ("pairings", {"throughput_b": True}),
    "a pair with a note of two lines": ("pairings", {"note": "a\nb"}),
    "a pair with a strange field": ("pairings", {"speed": 1}),
}


@pytest.mark.parametrize(("name", "wrong"), WRONG.values(), ids=WRONG)
def test_what_makes_no_sense_is_refused(root: APIClient, name: str, wrong: Row) -> None:
    model, path, row = TABLES[name]
    answer = root.post(path, row | wrong, format="json")
    assert answer.status_code == 400
    assert set(answer.json()["fields"]) == set(wrong)
    assert not model.objects.exists()
