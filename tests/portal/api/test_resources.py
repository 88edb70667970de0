"""The other resources: fleet, tenants, quotas, usage, decisions, fairness."""

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from scheduler.models import SchedulingPolicy
from telemetry.models import Node
from tenants.choices import Role
from tests import factories
from tests.portal.world import A100, World, asked

V1 = "/api/v1/"


def results(client: APIClient, path: str) -> list[dict[str, Any]]:
    answer = client.get(f"{V1}{path}")
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_everybody_sees_the_fleet(ada: APIClient) -> None:
    assert [row["slug"] for row in results(ada, "clusters/")] == ["this-machine"]
    nodes = results(ada, "nodes/?cluster=this-machine")
    assert [(row["name"], row["device_count"]) for row in nodes] == [("n1", 2), ("n2", 2)]
    devices = results(ada, f"devices/?node=n1&flavor={A100}")
    assert [(row["node"], row["index"], row["compute_units"]) for row in devices] == [
        ("n1", 0, 312.0),
        ("n1", 1, 312.0),
    ]
    assert results(ada, "devices/?node=n9") == []
    assert [row["slug"] for row in results(ada, "priority-classes/")] == ["high", "normal", "low"]


def test_an_unknown_model_has_no_compute_units_rather_than_zero(
    ada: APIClient, world: World
) -> None:
    node = Node.objects.get(cluster=world.cluster, name="n2")
    factories.device(node, 7, flavor="other-x", model="X", compute_units=None)
    assert results(ada, "devices/?flavor=other-x")[0]["compute_units"] is None


def test_a_device_says_where_on_its_node_it_is(ada: APIClient, world: World) -> None:
    node = Node.objects.get(cluster=world.cluster, name="n2")
    factories.device(node, 7, flavor="other-x", model="X", numa_node=1, nic="mlx5_2")
    (row,) = results(ada, "devices/?flavor=other-x")
    assert (row["numa_node"], row["nic"]) == (1, "mlx5_2")


def test_who_runs_the_portal_cordons_drains_and_opens_a_node(root: APIClient, world: World) -> None:
    pk = Node.objects.get(cluster=world.cluster, name="n1").pk
    for action, scheduling in (
        ("cordon", "cordoned"),
        ("drain", "draining"),
        ("uncordon", "open"),
    ):
        answer = root.post(f"{V1}nodes/{pk}/{action}/", {"reason": "fan"}, format="json")
        assert (answer.status_code, answer.json()["scheduling"]) == (200, scheduling)
    assert root.post(f"{V1}nodes/{pk}/cordon/").status_code == 200
    assert root.post(f"{V1}nodes/{pk}/cordon/", {"reason": 3}, format="json").status_code == 400
    assert root.post(f"{V1}nodes/99999999/cordon/").status_code == 404


def test_nobody_else_operates_nodes(lead: APIClient, world: World) -> None:
    pk = Node.objects.get(cluster=world.cluster, name="n1").pk
    assert lead.post(f"{V1}nodes/{pk}/drain/").status_code == 403
    assert Node.objects.get(pk=pk).scheduling == "open"


def test_who_runs_the_portal_changes_how_a_cluster_decides(root: APIClient, ada: APIClient) -> None:
    path = f"{V1}clusters/this-machine/policy/"
    answer = root.patch(path, {"strategy": "optimising", "budget_s": 0.5}, format="json")
    assert answer.json() == {
        "strategy": "optimising",
        "budget_s": 0.5,
        "placement": "pack",
        "kinds": {},
        "shadow": "",
        "solver": "highs",
        "power_cap_w": None,
        "weights": {
            "order": {
                "priority_class": 1000.0,
                "fair_share": 500.0,
                "age": 300.0,
                "size": 50.0,
                "age_max_s": 604800.0,
                "qos": 100.0,
            },
            "objective": {
                "utilisation": 1.0,
                "performance": 1.0,
                "fairness": 1.0,
                "energy": 0.1,
            },
            "qos": {"training": 0.0, "inference": 1.0, "batch": 0.0, "notebook": 1.0},
            "queue": {"backfill_depth": 100, "remedy_depth": 10, "patience_s": 86400.0},
        },
        "preempt_by_reclaim": True,
        "preempt_by_fair_share": True,
        "preempt_by_priority": False,
        "preempt_delay_s": 60.0,
        "preempt_min_runtime_s": 600.0,
        "preempt_grace_s": 30.0,
        "preempt_most_evictions": 3,
    }
    assert SchedulingPolicy.objects.get().budget_s == 0.5
    mistakes: list[dict[str, Any]] = [
        {"strategy": "magic"},
        {"budget_s": 0},
        {"budget_s": "1"},
        {"placement": []},
        {"kinds": {"holiday": "rules"}},
        {"kinds": {"batch": []}},
        {"kinds": "rules"},
        {"shadow": "magic"},
        {"solver": 1},
        {"power_cap_w": -1},
        {"power_cap_w": "high"},
        {"preempt_by_priority": 1},
        {"preempt_delay_s": -1},
        {"preempt_grace_s": 3601},
        {"preempt_min_runtime_s": True},
        {"preempt_most_evictions": 1.5},
    ]
    for wrong in mistakes:
        refused = root.patch(path, wrong, format="json")
        assert (refused.status_code, list(refused.json()["fields"])) == (400, list(wrong))
    chosen = {
        "kinds": {"notebook": "rules"},
        "shadow": "rules",
        "solver": "cbc",
        "power_cap_w": 9000,
    }
    chosen |= {"preempt_by_priority": True, "preempt_delay_s": 0, "preempt_most_evictions": 0}
    assert root.patch(path, chosen, format="json").json().items() >= chosen.items()
    assert root.patch(path, {}, format="json").json()["power_cap_w"] == 9000
    lifted = root.patch(path, {"power_cap_w": None}, format="json")
    assert lifted.json()["power_cap_w"] is None
    assert ada.get(path).json()["strategy"] == "optimising"
    assert ada.patch(path, {"strategy": "rules"}, format="json").status_code == 403


def test_the_numbers_that_tune_decisions_are_set_and_brought_back(
    root: APIClient, ada: APIClient
) -> None:
    path = f"{V1}clusters/this-machine/policy/"
    asked: dict[str, Any] = {"order": {"age": 7}, "queue": {"patience_s": 60, "remedy_depth": 0}}
    told = root.patch(path, {"weights": asked}, format="json").json()["weights"]
    assert (told["order"]["age"], told["order"]["size"]) == (7.0, 50.0)
    assert (told["queue"]["patience_s"], told["queue"]["remedy_depth"]) == (60.0, 0)
    assert SchedulingPolicy.objects.get().weights == asked
    assert root.patch(path, {"weights": told}, format="json").json()["weights"] == told
    back = root.patch(path, {"weights": None}, format="json").json()["weights"]
    assert back["queue"] == {"backfill_depth": 100, "remedy_depth": 10, "patience_s": 86400.0}
    assert SchedulingPolicy.objects.get().weights == {}
    assert ada.patch(path, {"weights": asked}, format="json").status_code == 403


@pytest.mark.parametrize(
    ("weights", "field"),
    [
        ({"order": {"speed": 1}}, "weights.order.speed"),
        ({"magic": {}}, "weights.magic"),
        ("heavy", "weights"),
        ({"order": {"age": -1}}, "weights.order.age"),
        ({"order": {"age": "7"}}, "weights.order.age"),
        ({"order": {"age": 10**4000}}, "weights.order.age"),
        ({"order": {"age": {"a": []}}}, "weights.order.age"),
        ({"qos": {"batch": 1.01}}, "weights.qos.batch"),
        ({"queue": {"backfill_depth": 0.5}}, "weights.queue.backfill_depth"),
    ],
)
def test_a_wrong_weight_is_refused_by_name(root: APIClient, weights: object, field: str) -> None:
    path = f"{V1}clusters/this-machine/policy/"
    refused = root.patch(path, {"weights": weights}, format="json")
    assert (refused.status_code, list(refused.json()["fields"])) == (400, [field])


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_weight_that_is_no_number_is_refused(root: APIClient, number: str) -> None:
    path = f"{V1}clusters/this-machine/policy/"
    body = f'{{"weights": {{"order": {{"age": {number}}}}}}}'
    assert root.patch(path, body, content_type="application/json").status_code == 400


def test_a_member_sees_their_own_tenants_only(ada: APIClient, root: APIClient) -> None:
    assert [row["slug"] for row in results(ada, "tenants/")] == ["vision"]
    assert [row["slug"] for row in results(root, "tenants/")] == ["language", "vision"]


def test_a_parent_that_one_may_not_see_is_not_named(world: World, ada: APIClient) -> None:
    boss = factories.tenant("boss")
    world.vision.parent = boss
    world.vision.save()
    assert results(ada, "tenants/")[0]["parent"] is None


def test_tenants_are_made_changed_moved_and_deleted(root: APIClient) -> None:
    made = root.post(f"{V1}tenants/", {"slug": "lab", "name": "Lab"}, format="json")
    assert (made.status_code, made.json()["fair_weight"]) == (201, 1.0)
    sub = {"slug": "sub", "name": "Sub", "parent": "lab"}
    assert root.post(f"{V1}tenants/", sub, format="json").json()["parent"] == "lab"
    again = root.post(f"{V1}tenants/", sub, format="json")
    assert (again.status_code, list(again.json()["fields"])) == (400, ["slug"])
    assert root.delete(f"{V1}tenants/lab/").status_code == 409
    change = {"name": "Other", "fair_weight": 2.5, "queue_priority": 3, "parent": None}
    change |= {"preemption_fence": True}
    changed = root.patch(f"{V1}tenants/sub/", change, format="json").json()
    assert changed["queue_priority"] == 3
    assert (changed["name"], changed["fair_weight"], changed["parent"]) == ("Other", 2.5, None)
    assert changed["preemption_fence"] is True
    assert root.delete(f"{V1}tenants/lab/").status_code == 204
    assert root.get(f"{V1}tenants/lab/").status_code == 404


def test_a_change_of_a_tenant_is_all_or_nothing(root: APIClient) -> None:
    wrong = {"name": "New name", "parent": "vision"}
    assert root.patch(f"{V1}tenants/vision/", wrong, format="json").status_code == 400
    assert root.get(f"{V1}tenants/vision/").json()["name"] == "Vision"


def test_a_lead_gives_and_takes_roles_but_not_of_admins(lead: APIClient) -> None:
    path = f"{V1}tenants/vision/members/"
    given = lead.post(path, {"user": "eve", "role": "member"}, format="json")
    assert (given.status_code, given.json()) == (200, {"user": "eve", "role": "member"})
    assert {row["user"] for row in results(lead, "tenants/vision/members/")} == {
        "ada",
        "eve",
        "lead",
        "viewer",
    }
    assert lead.post(path, {"user": "eve", "role": "admin"}, format="json").status_code == 403
    assert lead.post(path, {"user": "nobody", "role": "member"}, format="json").status_code == 400
    assert lead.post(path, {"user": "eve", "role": "king"}, format="json").status_code == 400
    assert lead.delete(f"{path}eve/").status_code == 204
    assert lead.delete(f"{path}eve/").status_code == 404


def test_an_admin_above_says_what_a_tenant_owns(
    root: APIClient, ada: APIClient, world: World
) -> None:
    line = {"tenant": "vision", "cluster": "this-machine", "flavor": A100, "nominal": 2000}
    made = root.post(f"{V1}quotas/", line, format="json")
    assert (made.status_code, made.json()["borrowing_limit"]) == (200, None)
    path = f"{V1}quotas/{made.json()['id']}/"
    changed = root.patch(path, {"borrowing_limit": 500}, format="json").json()
    assert (changed["nominal"], changed["borrowing_limit"]) == (2000, 500)
    assert [row["nominal"] for row in results(ada, "quotas/?tenant=vision")] == [2000]
    assert ada.patch(path, {"nominal": 9}, format="json").status_code == 403
    for wrong in ({"nominal": -1}, {"nominal": "2000"}, {"nominal": 1.5}, {"lending_limit": 9999}):
        refused = root.patch(path, wrong, format="json")
        assert (refused.status_code, list(refused.json()["fields"])) == (400, list(wrong))
    assert root.post(f"{V1}quotas/", {**line, "nominal": None}, format="json").status_code == 400
    assert root.post(f"{V1}quotas/", {**line, "cluster": "x"}, format="json").status_code == 400
    assert root.delete(path).status_code == 204
    assert world.vision.quotas.count() == 0


def test_what_is_held_shows_as_placement_decision_share_and_use(
    ada: APIClient, eve: APIClient, run_first: Callable[[], None]
) -> None:
    uid = ada.post(f"{V1}jobs/", asked(devices=1), format="json").json()["uid"]
    run_first()
    placement = results(ada, f"placements/?job={uid}&open=true")[0]
    assert (placement["attempt"], placement["flavor"]) == (1, A100)
    assert placement["replicas"][0]["devices"][0]["gpu_milli"] == 1000
    decision = results(ada, f"decisions/?job={uid}")[0]
    assert (decision["verb"], decision["message"]) == ("start", "The scheduler found its place.")
    shares = results(ada, "fairness/?cluster=this-machine")
    assert ("vision", A100) in {(row["tenant"], row["flavor"]) for row in shares}
    use = {row["flavor"]: row for row in results(ada, "usage/")}
    assert use["cpu"]["allocated_milli_us"] >= 0
    assert set(use) == {"cpu", A100}
    for path in ("placements/", "decisions/", "usage/"):
        assert results(eve, path) == []
    others = results(eve, "fairness/?cluster=this-machine")
    assert "vision" not in {row["tenant"] for row in others}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("since=yesterday", "since"),
        ("until=2026-13-01T00:00:00Z", "until"),
        ("until=0083-01-01T00:00:00Z", "until"),
        ("since=9999-12-31T23:59:59-12:00", "since"),
        ("since=2026-02-02T00:00:00Z&until=2026-02-01T00:00:00Z", "since"),
    ],
)
def test_a_window_that_is_none_is_refused(ada: APIClient, query: str, field: str) -> None:
    answer = ada.get(f"{V1}usage/?{query}")
    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])


def test_shares_are_of_one_cluster(ada: APIClient) -> None:
    assert ada.get(f"{V1}fairness/").status_code == 400
    assert ada.get(f"{V1}fairness/?cluster=nowhere").status_code == 404


LISTS = {
    "jobs/": 6,
    "placements/": 9,
    "decisions/": 6,
    "tenants/": 7,
    "quotas/": 6,
    "nodes/": 6,
    "devices/": 5,
    "clusters/": 5,
}


@pytest.fixture
def full_world(world: World, cycle: Callable[..., None]) -> None:
    """Many of everything."""
    for number in range(6):
        factories.job(world.vision, world.ada, world.cluster, name=f"job {number}")
        factories.member(factories.tenant(f"sub{number}", world.vision), Role.VIEWER)
        factories.quota(world.vision, factories.cluster(f"cluster{number}"))
    cycle()


@pytest.mark.usefixtures("full_world")
@pytest.mark.parametrize(("path", "most"), LISTS.items(), ids=LISTS.keys())
def test_a_list_takes_a_fixed_number_of_queries(
    ada: APIClient, path: str, most: int, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(most):
        assert ada.get(f"{V1}{path}").status_code == 200
