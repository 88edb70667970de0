"""What is said of classes of jobs, saved and removed from the page of the clusters."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from scheduler.models import LearntThroughput, Pairing, Throughput
from scheduler.services.throughputs import throughput_delete
from tests import factories
from tests.portal.pages.conftest import A100, World, text_of

PAGE = "/admin/clusters/?cluster=demo"
ROW = {
    "save": "throughput",
    "job_class": "lm",
    "flavor": A100,
    "throughput": "0.45",
    "note": "from a paper",
}
PAIR = {
    "save": "pairing",
    "class_a": "cv",
    "class_b": "lm",
    "throughput_a": "0.9",
    "throughput_b": "0.45",
    "note": "from a paper",
}


def test_a_throughput_is_said_shown_and_removed(root: Client) -> None:
    answer = root.post(PAGE, ROW)
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    row = Throughput.objects.get()
    assert (row.job_class, row.flavor, row.throughput) == ("lm", A100, 0.45)
    page = text_of(root.get(PAGE))
    assert "0.45" in page
    assert "from a paper" in page
    removed = root.post(f"/admin/throughputs/{row.pk}/remove/?cluster=demo")
    assert (removed.status_code, removed["Location"]) == (302, PAGE)
    assert root.post(f"/admin/throughputs/{row.pk}/remove/").status_code == 404
    assert "from a paper" not in text_of(root.get(PAGE))


def test_a_pair_is_said_shown_and_removed(root: Client) -> None:
    assert root.post(PAGE, PAIR).status_code == 302
    row = Pairing.objects.get()
    assert (row.class_a, row.throughput_a, row.class_b, row.throughput_b) == ("cv", 0.9, "lm", 0.45)
    page = text_of(root.get(PAGE))
    assert "cv + lm" in page
    assert "0.900 / 0.450" in page
    assert "never" in page
    assert root.post(f"/admin/pairings/{row.pk}/remove/").status_code == 302
    assert root.post(f"/admin/pairings/{row.pk}/remove/").status_code == 404
    assert "from a paper" not in text_of(root.get(PAGE))


WRONG: dict[str, tuple[dict[str, str], str, str]] = {
    "a throughput of nothing": (ROW | {"throughput": "0"}, "throughput", "more than 0"),
    "a throughput that is no number": (ROW | {"throughput": "nan"}, "throughput", "number"),
    "a flavor that does not exist": (ROW | {"flavor": "x"}, "flavor", "x is not one of"),
    "no flavor": (ROW | {"flavor": ""}, "flavor", "required"),
    "a class with a blank": (ROW | {"job_class": "l m"}, "job_class", "class"),
    "a pair faster than alone": (PAIR | {"throughput_a": "2"}, "throughput_a", "1"),
    "no class": (PAIR | {"class_a": ""}, "class_a", "required"),
    "markup": (PAIR | {"class_b": "<b>"}, "class_b", "class"),
    "two of one class, unlike": (PAIR | {"class_a": "lm"}, "throughput_b", "same number twice"),
    "a note of two lines": (PAIR | {"note": "a\nb"}, "note", "one line"),
}


@pytest.mark.parametrize(("typed", "field", "said"), WRONG.values(), ids=WRONG)
def test_what_is_refused_comes_back_as_typed_with_the_reason_at_its_field(
    root: Client, typed: dict[str, str], field: str, said: str
) -> None:
    answer = root.post(PAGE, typed)
    assert answer.status_code == 422
    form = answer.context[f"{typed['save']}_form"]
    assert list(form.errors) == [field]
    (reason,) = form.errors[field]
    assert said in reason
    assert "/api/" not in reason
    assert {name: form.data[name] for name in typed} == typed
    assert not list(answer.context["messages"])
    assert not Throughput.objects.exists()
    assert not Pairing.objects.exists()


def test_what_is_refused_in_one_form_leaves_the_others_fresh(root: Client) -> None:
    answer = root.post(PAGE, ROW | {"throughput": "2"})
    assert not answer.context["form"].is_bound
    assert not answer.context["pairing_form"].is_bound
    page = text_of(answer)
    assert page.count('value="from a paper"') == 1
    assert page.count('id="id_note"') == 0  # each form has ids of its own


def test_the_flavors_of_the_fleet_come_before_those_of_the_catalogue(
    root: Client, world: World
) -> None:
    node = world.demo.nodes.get(name="n1")
    factories.device(node, 7, flavor="other-x", model="X")
    choices = [
        slug for slug, _ in root.get(PAGE).context["throughput_form"]["flavor"].field.choices
    ]
    assert choices[:3] == ["", A100, "other-x"]
    assert len(choices) == len(set(choices))
    assert not [slug for slug in choices if slug.startswith("cpu-")]
    assert root.post(PAGE, ROW | {"flavor": "other-x"}).status_code == 302


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
    root.post(PAGE, ROW)
    assert "not used" in text_of(root.get(PAGE))


MADE: dict[str, Callable[[], Any]] = {
    "throughputs": lambda: Throughput.objects.create(job_class="lm", flavor=A100, throughput=1),
    "pairings": lambda: Pairing.objects.create(
        class_a="cv", class_b="lm", throughput_a=1, throughput_b=1
    ),
}


@pytest.mark.parametrize("who", ["ada", "lead", "viewer", "eve"])
@pytest.mark.parametrize(("name", "make"), MADE.items(), ids=MADE)
def test_nobody_else_says_or_removes_it(
    world: World, who: str, name: str, make: Callable[[], Any]
) -> None:
    row = make()
    browser = world.sees(getattr(world, who))
    assert browser.post(PAGE, ROW if name == "throughputs" else PAIR).status_code == 403
    assert browser.post(f"/admin/{name}/{row.pk}/remove/").status_code == 403
    assert type(row).objects.count() == 1


def test_who_comes_second_to_remove_a_row_is_told_that_there_is_none(
    root: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = MADE["throughputs"]()

    def after_another(**asked: Any) -> None:
        Throughput.objects.all().delete()
        throughput_delete(**asked)

    monkeypatch.setattr("portal.pages.given.throughput_delete", after_another)
    assert root.post(f"/admin/throughputs/{row.pk}/remove/").status_code == 404
