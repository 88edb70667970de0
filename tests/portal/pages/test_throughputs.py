"""Throughputs, said and removed from the page of the clusters."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from scheduler.models import LearntThroughput, Throughput
from scheduler.services.throughputs import throughput_delete
from tests.portal.pages.conftest import A100, World, text_of

PAGE = "/admin/clusters/?cluster=demo"
SAVE = "/admin/throughputs/save/"
ROW = {"job_class": "lm", "flavor": A100, "throughput": "0.45", "note": "from a paper"}


def test_a_row_is_said_shown_and_removed(root: Client) -> None:
    assert root.post(SAVE, ROW).status_code == 302
    row = Throughput.objects.get()
    assert (row.job_class, row.flavor, row.throughput) == ("lm", A100, 0.45)
    page = text_of(root.get(PAGE))
    assert "0.45" in page
    assert "from a paper" in page
    assert root.post(f"/admin/throughputs/{row.pk}/remove/").status_code == 302
    assert root.post(f"/admin/throughputs/{row.pk}/remove/").status_code == 404
    assert "from a paper" not in text_of(root.get(PAGE))


def test_what_runs_have_shown_stands_below_what_was_said(root: Client, world: World) -> None:
    LearntThroughput.objects.create(
        tenant=world.vision,
        job_class="lm",
        flavor=A100,
        throughput=0.375,
        work_count=2,
        run_count=41,
        last_run_at=datetime(2026, 1, 5, tzinfo=UTC),
    )
    page = text_of(root.get(PAGE))
    assert "Learnt from runs" in page
    assert "0.375" in page
    assert "not used" not in page
    root.post(SAVE, ROW)
    assert "not used" in text_of(root.get(PAGE))


@pytest.mark.parametrize(
    "wrong", [{"throughput": "0"}, {"throughput": "nan"}, {"flavor": "x"}, {"job_class": ""}]
)
def test_a_wrong_row_is_refused_and_why_is_said(root: Client, wrong: dict[str, str]) -> None:
    answer = root.post(SAVE, ROW | wrong, follow=True)
    assert not Throughput.objects.exists()
    assert [message.level_tag for message in answer.context["messages"]] == ["error"]


@pytest.mark.parametrize("who", ["ada", "lead", "viewer", "eve"])
def test_nobody_else_says_it(world: World, who: str) -> None:
    row = Throughput.objects.create(job_class="lm", flavor=A100, throughput=1)
    browser = world.sees(getattr(world, who))
    assert browser.post(SAVE, ROW).status_code == 403
    assert browser.post(f"/admin/throughputs/{row.pk}/remove/").status_code == 403
    assert Throughput.objects.count() == 1


def test_who_comes_second_to_remove_a_row_is_told_that_there_is_none(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    root.post(SAVE, ROW)
    row = Throughput.objects.get()

    def after_another(**asked: Any) -> None:
        Throughput.objects.all().delete()
        throughput_delete(**asked)

    monkeypatch.setattr("portal.pages.throughputs.throughput_delete", after_another)
    assert root.post(f"/admin/throughputs/{row.pk}/remove/").status_code == 404
