"""Who changed what, as a page."""

from django.test import Client

from portal.pages.audit import changes_of
from tests.portal.pages.conftest import text_of


def test_a_change_is_shown_with_its_actor_and_both_values(root: Client) -> None:
    fields = {"name": "<i>New</i>", "fair_weight": "2"}
    root.post("/admin/tenants/vision/update/", fields)
    page = text_of(root.get("/admin/audit/?q=vision"))
    assert "root" in page
    assert "Vision → &lt;i&gt;New&lt;/i&gt;" in page
    assert "<i>New" not in page


def test_nobody_else_reads_it(ada: Client, lead: Client) -> None:
    assert ada.get("/admin/audit/").status_code == 403
    assert lead.get("/admin/audit/").status_code == 403


def test_strange_addresses_break_nothing(root: Client) -> None:
    for query in ("q=%00", "page=x", "page=9999", "q=nothing-like-it"):
        assert root.get(f"/admin/audit/?{query}").status_code == 200


def test_only_what_says_something_to_people_is_a_change() -> None:
    found = changes_of(
        {
            "a": ["1", "2"],
            "b": ["None", "2"],
            "id": ["None", "7"],
            "jobs": ["None", "scheduler.Job.None"],
            "m2m": {"type": "m2m"},
        }
    )
    assert found == [("a", "1", "2"), ("b", "", "2")]
