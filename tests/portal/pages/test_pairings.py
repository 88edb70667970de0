"""Pairs of classes, said and removed from the page of the clusters."""

import pytest
from django.test import Client

from scheduler.models import Pairing
from tests.portal.pages.conftest import World, text_of

PAGE = "/admin/clusters/?cluster=demo"
SAVE = "/admin/pairings/save/"
ROW = {
    "class_a": "cv",
    "class_b": "lm",
    "throughput_a": "0.9",
    "throughput_b": "0.45",
    "note": "from a paper",
}


def test_a_pair_is_said_shown_and_removed(root: Client) -> None:
    assert root.post(SAVE, ROW).status_code == 302
    row = Pairing.objects.get()
    assert (row.class_a, row.throughput_a, row.class_b, row.throughput_b) == ("cv", 0.9, "lm", 0.45)
    page = text_of(root.get(PAGE))
    assert "cv + lm" in page
    assert "0.900 / 0.450" in page
    assert "never" in page
    assert root.post(f"/admin/pairings/{row.pk}/remove/").status_code == 302
    assert root.post(f"/admin/pairings/{row.pk}/remove/").status_code == 404
    assert "from a paper" not in text_of(root.get(PAGE))


@pytest.mark.parametrize(
    "wrong", [{"throughput_a": "2"}, {"throughput_b": "nan"}, {"class_a": ""}, {"class_b": "<b>"}]
)
def test_a_wrong_pair_is_refused_and_why_is_said(root: Client, wrong: dict[str, str]) -> None:
    answer = root.post(SAVE, ROW | wrong, follow=True)
    assert not Pairing.objects.exists()
    assert [message.level_tag for message in answer.context["messages"]] == ["error"]


@pytest.mark.parametrize("who", ["ada", "lead", "viewer", "eve"])
def test_nobody_else_says_it(world: World, who: str) -> None:
    row = Pairing.objects.create(class_a="cv", class_b="lm", throughput_a=1, throughput_b=1)
    browser = world.sees(getattr(world, who))
    assert browser.post(SAVE, ROW).status_code == 403
    assert browser.post(f"/admin/pairings/{row.pk}/remove/").status_code == 403
    assert Pairing.objects.count() == 1
