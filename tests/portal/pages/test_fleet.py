"""A cluster's page."""

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from tests import factories
from tests.portal.pages.conftest import World, text_of


def test_the_simulated_fleet_says_that_it_is_invented(ada: Client) -> None:
    assert "k-simulated" in text_of(ada.get("/fleet/demo/"))
    assert "k-simulated" not in text_of(ada.get("/fleet/this-machine/"))


def test_fleet_leads_to_this_machine(ada: Client) -> None:
    assert ada.get("/fleet/")["Location"] == "/fleet/this-machine/"
    assert ada.get("/fairness/")["Location"] == "/fairness/this-machine/"


@pytest.mark.parametrize("path", ["/fleet/moon/", "/fairness/moon/"])
def test_a_cluster_that_does_not_exist_is_not_found(ada: Client, path: str) -> None:
    assert ada.get(path).status_code == 404


def test_another_span_sends_the_chart_alone(ada: Client) -> None:
    page = text_of(ada.get("/fleet/demo/?span=7d", headers={"HX-Request": "true"}))
    assert "utilisation-figure" in page
    assert "<html" not in page
    assert ada.get("/fleet/demo/?span=nonsense").status_code == 200


def test_more_nodes_cost_no_more_queries(
    ada: Client, world: World, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for _number in range(20):
        factories.device(factories.node(world.demo))
    with django_assert_max_num_queries(22):
        ada.get("/fleet/demo/")
