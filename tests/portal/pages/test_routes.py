"""Every page, by everybody."""

import pytest
from django.test import Client

from tests.portal.pages.conftest import World, text_of

PAGES = (
    "/",
    "/jobs/",
    "/jobs/new/",
    "/fleet/this-machine/",
    "/fleet/demo/",
    "/fairness/demo/",
    "/usage/",
    "/admin/quotas/?cluster=demo",
    "/admin/tenants/",
    "/me/tokens/",
)


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("who", ["ada", "lead", "viewer", "eve", "root"])
def test_everybody_who_signed_in_sees_the_page(world: World, who: str, path: str) -> None:
    response = world.sees(getattr(world, who)).get(path)
    assert response.status_code == 200
    page = text_of(response)
    assert "<h1" in page
    assert " style=" not in page
    assert " onclick=" not in page


ADMIN_PAGES = (
    "/admin/nodes/",
    "/admin/nodes/?cluster=demo",
    "/admin/nodes/demo/n1/drain/",
    "/admin/clusters/",
    "/admin/clusters/?cluster=demo",
)


@pytest.mark.parametrize("path", ADMIN_PAGES)
@pytest.mark.parametrize("who", ["ada", "lead", "viewer", "eve"])
def test_pages_of_the_platform_are_closed_to_others(world: World, who: str, path: str) -> None:
    assert world.sees(getattr(world, who)).get(path).status_code == 403


@pytest.mark.parametrize("path", ADMIN_PAGES)
def test_pages_of_the_platform_open_to_its_admins(root: Client, path: str) -> None:
    assert root.get(path).status_code == 200


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("path", PAGES)
def test_nobody_without_a_session_sees_a_page(path: str) -> None:
    response = Client().get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/accounts/login/")
