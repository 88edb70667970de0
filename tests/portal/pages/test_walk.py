"""Walks every route of the pages: a new one is tried here without being named."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, reverse

from portal.pages.urls import urlpatterns
from tenants.models import Quota
from tests.portal.pages.conftest import A100, World

BELONGS_TO_A_TENANT = {"uid", "tenant", "pk"}
"""Arguments that name something of one tenant; `slug` does on tenants' own pages."""

OF_ALL = ("admin/throughputs/", "admin/pairings/")
"""Pages of what holds for all tenants alike."""


def routes() -> Iterator[URLPattern]:
    for pattern in urlpatterns:
        assert isinstance(pattern, URLPattern)
        yield pattern


def arguments(world: World, pattern: URLPattern) -> dict[str, object]:
    known = {
        "uid": world.job.pk,
        "slug": "vision" if is_of_tenants(pattern) else "demo",
        "tenant": "vision",
        "flavor": A100,
        "pk": Quota.objects.get(tenant=world.vision).pk,
        "username": "ada",
        "name": "n1",
        "action": "drain",
        "key": "0123456789abcde",
    }
    return {name: known[name] for name in pattern.pattern.converters}


def is_of_tenants(pattern: URLPattern) -> bool:
    return str(pattern.pattern).startswith("admin/tenants/")


def is_of_one_tenant(pattern: URLPattern) -> bool:
    names = set(pattern.pattern.converters)
    if str(pattern.pattern).startswith(OF_ALL):
        return False
    return bool(names & BELONGS_TO_A_TENANT) or (is_of_tenants(pattern) and "slug" in names)


NAMES = [str(pattern.name) for pattern in routes()]
BY_NAME = {str(pattern.name): pattern for pattern in routes()}
OBJECTS = [name for name in NAMES if is_of_one_tenant(BY_NAME[name])]


def path_of(world: World, name: str) -> str:
    return reverse(f"pages:{name}", kwargs=arguments(world, BY_NAME[name]))


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(NAMES)


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("method", ["get", "post"])
def test_what_belongs_to_another_tenant_does_not_exist(
    world: World, eve: Client, name: str, method: str
) -> None:
    response = getattr(eve, method)(path_of(world, name))
    assert response.status_code in {404, 405}
    other = {"get": "post", "post": "get"}[method]
    assert 404 in {response.status_code, getattr(eve, other)(path_of(world, name)).status_code}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["get", "post"])
def test_nobody_passes_without_signing_in(world: World, name: str, method: str) -> None:
    response = getattr(Client(), method)(path_of(world, name))
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("name", NAMES)
def test_whoever_was_deactivated_is_signed_out(world: World, ada: Client, name: str) -> None:
    world.ada.is_active = False
    world.ada.save(update_fields=["is_active"])
    assert ada.get(path_of(world, name)).status_code == 302


@pytest.mark.parametrize("name", NAMES)
def test_no_page_fails_for_the_platforms_admin(world: World, root: Client, name: str) -> None:
    assert root.get(path_of(world, name)).status_code in {200, 302, 405, 404}


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_changed_by_a_form_of_another_site(world: World, name: str) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(world.root)
    for headers in ({}, {"HX-Request": "true"}):
        answer = browser.post(path_of(world, name), headers=headers)
        assert answer.status_code in {403, 405}
