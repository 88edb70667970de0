"""Usage, as a page and as CSV."""

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from portal.pages.usage import Line, Window, csv_rows, harmless
from scheduler.models import LedgerEntry, Placement
from tests.portal.pages.conftest import A100, World, text_of

HOUR_US = 3_600_000_000


@pytest.fixture
def booked(world: World) -> None:
    end = datetime.now(UTC) - timedelta(hours=1)
    start = end - timedelta(hours=2)
    placement = Placement.objects.create(
        job=world.job, attempt=1, cluster=world.demo, created_at=start, released_at=end
    )
    LedgerEntry.objects.create(
        placement=placement,
        tenant=world.vision,
        cluster=world.demo,
        owner=world.ada,
        flavor=A100,
        milli=2000,
        compute_units=624.0,
        opened_at=start,
        closed_at=end,
        allocated_milli_us=2000 * 2 * HOUR_US,
        utilised_milli_us=1000 * 2 * HOUR_US,
    )


@pytest.mark.usefixtures("booked")
def test_two_devices_for_two_hours_half_busy(ada: Client) -> None:
    page = text_of(ada.get("/usage/"))
    assert 'data-label="Allocated, h">4.000<' in page
    assert 'data-label="Utilised, h">2.000<' in page
    assert 'data-label="Idle, h">2.000<' in page
    assert 'data-label="CU-hours">1248.00' in page


@pytest.mark.usefixtures("booked")
def test_another_tenant_sees_none_of_it(eve: Client) -> None:
    assert A100 not in text_of(eve.get("/usage/"))
    assert A100 not in b"".join(eve.get("/usage/csv/").streaming_content).decode()  # type: ignore[attr-defined]


@pytest.mark.usefixtures("booked")
def test_the_csv_holds_the_same_numbers(ada: Client) -> None:
    response = ada.get("/usage/csv/?period=24h")
    body = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    (row,) = csv.DictReader(io.StringIO(body))
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"].startswith("attachment;")
    assert (row["tenant"], row["flavor"]) == ("vision", A100)
    assert (row["allocated_h"], row["idle_h"]) == ("4.000000", "2.000000")


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx"])
def test_a_cell_is_never_a_formula(text: str) -> None:
    assert harmless(text) == "'" + text


def test_a_name_that_looks_like_a_formula_is_harmless_in_the_csv() -> None:
    now = datetime(2026, 3, 2, tzinfo=UTC)
    line = Line("=cmd()", "n", "-f", "f", 1, 1, 0, 0, 0, unknown_cu=False)
    (row,) = csv.DictReader(io.StringIO("".join(csv_rows([line], Window(now, now, "")))))
    assert (row["tenant"], row["flavor"]) == ("'=cmd()", "'-f")


@pytest.mark.parametrize(
    "query",
    ["since=2026-03-02&until=2026-03-01", "since=x&until=y", "since=0001-01-01&until=9999-12-31"],
)
def test_dates_that_make_no_period_are_said_to_be_wrong(ada: Client, query: str) -> None:
    response = ada.get(f"/usage/?{query}")
    assert response.status_code == 200
    assert "Give two dates" in text_of(response)


@pytest.mark.parametrize("cluster", ["moon", "%00"])
def test_a_cluster_that_does_not_exist_is_not_found(ada: Client, cluster: str) -> None:
    assert ada.get(f"/usage/?cluster={cluster}").status_code == 404
