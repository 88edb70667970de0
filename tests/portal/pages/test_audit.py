"""Who changed what, as a page."""

from auditlog.models import LogEntry
from django.test import Client

from portal.pages.audit import changes_of
from telemetry.models import Node
from tests.portal.pages.conftest import A100, World, text_of
from tests.portal.world import client_of


def test_a_change_is_shown_with_its_actor_and_both_values(root: Client) -> None:
    fields = {"name": "<i>New</i>", "fair_weight": "2", "queue_priority": "5"}
    root.post("/admin/tenants/vision/update/", fields)
    page = text_of(root.get("/admin/audit/?q=vision"))
    assert "queue priority" in page
    assert "root" in page
    assert "Vision → &lt;i&gt;New&lt;/i&gt;" in page
    assert "<i>New" not in page


def test_what_is_said_of_a_node_is_there_with_who_said_it(root: Client, world: World) -> None:
    root.post("/admin/nodes/demo/n1/cordon/", {"reason": "fan <b>broken</b>"})
    page = text_of(root.get("/admin/audit/?q=n1"))
    assert "changed node <strong>n1</strong>" in page
    assert "fan &lt;b&gt;broken" in page
    by_token = client_of(world.root)
    node = Node.objects.get(name="n2")
    assert by_token.post(f"/api/v1/nodes/{node.pk}/drain/", {}, format="json").status_code == 200
    entry = LogEntry.objects.get_for_object(node).get(action=LogEntry.Action.UPDATE)
    assert entry.actor == world.root
    assert entry.changes == {"scheduling": ["open", "draining"]}


def test_what_is_measured_of_a_node_leaves_no_audit_row(world: World) -> None:
    node = world.here.nodes.get()
    node.memory_used_mib = 77
    node.save()
    assert not LogEntry.objects.get_for_object(node).exclude(action=LogEntry.Action.CREATE).exists()


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
            "created_at": ["None", "2026-01-05 12:00:00"],
        },
        {},
    )
    assert found == [("a", "1", "2"), ("b", "", "2")]


def test_keys_and_thousandths_are_shown_as_names_and_amounts(root: Client) -> None:
    asked = {"tenant": "vision", "flavor": A100, "nominal": "2.5"}
    root.post("/admin/quotas/?cluster=demo", asked)
    page = text_of(root.get("/admin/audit/?q=vision"))
    assert "4 → 2.5" in page
    assert "4000" not in page
    root.post("/admin/tenants/vision/members/", {"username": "eve", "role": "viewer"})
    found = changes_of(
        {"tenant": ["None", "7"], "user": ["None", "3"], "role": ["lead", "viewer"]},
        {"tenant": {"7": "vision"}, "user": {"3": "eve"}},
    )
    assert found == [
        ("tenant", "", "vision"),
        ("account", "", "eve"),
        ("role", "lead", "viewer"),
    ]
