"""Every address there is: nobody learns anything of another team's objects, anonymous of nothing.

A new address must be entered into one of the tables below, or the first test fails.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from knox.models import AuthToken

from scheduler.core.resources import CPU_FLAVOR
from scheduler.models import LearntThroughput, Pairing, Throughput
from tenants.models import Quota
from tests import factories
from tests.portal.world import World

SECRET = "secret-job-of-vision"

OPEN = {
    "healthz",
    "readyz",
    "set_language",
    "account_login",
    "account_logout",
    "api:missing",
    "api:schema",
    "api:docs",
}
"""Addresses that answer without a session, each for its reason."""

SIGNED_IN = {
    "account_change_password",
    "account_reauthenticate",
    "account_set_password",
    "api:jobs",
    "api:placements",
    "api:decisions",
    "api:usage",
    "api:fairness",
    "api:priority-classes",
    "api:clusters",
    "api:cluster",
    "api:cluster-policy",
    "api:nodes",
    "api:node",
    "api:node-cordon",
    "api:node-drain",
    "api:node-uncordon",
    "api:devices",
    "api:tenants",
    "api:quotas",
    "api:learnt-throughputs",
    "api:pairings",
    "api:pairing",
    "api:throughputs",
    "api:throughput",
    "api:me",
    "api:tokens",
    "pages:home",
    "pages:job-list",
    "pages:job-new",
    "pages:job-estimate",
    "pages:fleet-index",
    "pages:fleet",
    "pages:fairness-index",
    "pages:fairness",
    "pages:usage",
    "pages:usage-csv",
    "pages:admin-tenants",
    "pages:admin-quotas",
    "pages:tokens",
    "pages:admin-nodes",
    "pages:admin-node-act",
    "pages:admin-audit",
    "pages:admin-clusters",
    "pages:admin-pairing-remove",
    "pages:admin-throughput-remove",
}
"""Addresses of nobody's or of everybody's objects, and lists that each viewer sees a part of."""

OBJECTS = {
    "api:job": "job",
    "api:job-log": "job",
    "api:job-events": "job",
    "api:job-cancel": "job",
    "api:job-resubmit": "job",
    "api:tenant": "tenant",
    "api:members": "tenant",
    "api:member": "member",
    "api:quota": "quota",
    "api:token": "token",
    "pages:job-detail": "job",
    "pages:job-cancel": "job",
    "pages:job-resubmit": "job",
    "pages:admin-tenant": "tenant",
    "pages:admin-tenant-update": "tenant",
    "pages:admin-tenant-move": "tenant",
    "pages:admin-tenant-delete": "tenant",
    "pages:admin-member-set": "tenant",
    "pages:admin-member-remove": "member",
    "pages:admin-person-new": "tenant",
    "pages:admin-quota-remove": "quota",
    "pages:admin-quota-edit": "quota-line",
    "pages:admin-quota-save": "quota-line",
    "pages:token-revoke": "token",
}
"""Addresses of one team's objects -> which one of Vision's they are tried with."""


def routes() -> dict[str, tuple[str, ...]]:
    """Return name -> parameters of every address of the portal."""
    return dict(_walk(get_resolver().url_patterns, ""))


def _walk(patterns: Any, space: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            inner = f"{space}{pattern.namespace}:" if pattern.namespace else space
            yield from _walk(pattern.url_patterns, inner)
        elif isinstance(pattern, URLPattern):
            yield f"{space}{pattern.name}", tuple(pattern.pattern.converters)


@pytest.fixture
def objects(world: World) -> dict[str, dict[str, Any]]:
    """Return the parameters that name Vision's objects, and those that everybody may name."""
    job = factories.job(world.vision, world.ada, world.cluster, name=SECRET)
    factories.quota(world.vision, world.cluster, CPU_FLAVOR, 1000)
    AuthToken.objects.create(world.ada, expiry=timedelta(days=1))
    slug = {"slug": world.vision.slug}
    node = world.cluster.nodes.order_by("pk")[0]
    Throughput.objects.create(pk=node.pk, job_class="lm", flavor="a100", throughput=0.5)
    LearntThroughput.objects.create(
        tenant=world.vision,
        job_class=SECRET,
        flavor="a100",
        throughput=1,
        work_count=3,
        run_count=3,
        last_run_at=job.submitted_at,
    )
    Pairing.objects.create(
        pk=node.pk, class_a="cv", class_b="lm", throughput_a=0.9, throughput_b=0.4
    )
    return {
        "job": {"uid": job.pk},
        "tenant": slug,
        "member": {**slug, "username": "ada"},
        "quota": {"pk": Quota.objects.get().pk},
        "quota-line": {
            "slug": world.cluster.slug,
            "tenant": world.vision.slug,
            "flavor": CPU_FLAVOR,
        },
        "token": {"key": AuthToken.objects.get().token_key},
        "public": {
            "slug": world.cluster.slug,
            "pk": node.pk,
            "name": "n1",
            "action": "cordon",
        },
    }


def _address(name: str, objects: dict[str, dict[str, Any]]) -> str:
    chosen = objects[OBJECTS.get(name, "public")]
    return reverse(name, kwargs={key: chosen[key] for key in routes()[name]})


def _every_method(client: Client, address: str) -> dict[str, Any]:
    return {
        method: client.generic(method, address, "{}", content_type="application/json")
        for method in ("GET", "POST", "PATCH", "PUT", "DELETE")
    }


def test_every_address_is_in_one_of_the_tables() -> None:
    assert set(routes()) == OPEN | SIGNED_IN | set(OBJECTS)
    assert not OPEN & SIGNED_IN
    assert not (OPEN | SIGNED_IN) & set(OBJECTS)


def test_anonymous_learns_nothing(world: World, objects: dict[str, dict[str, Any]]) -> None:
    del world
    for name in SIGNED_IN | set(OBJECTS):
        address = _address(name, objects)
        for method, answer in _every_method(Client(), address).items():
            if address.startswith("/api/"):
                assert answer.status_code == 401, (method, address)
            else:
                assert answer.status_code in {302, 405}, (method, address)
                if answer.status_code == 302:
                    assert answer["Location"].startswith("/accounts/login/"), (method, address)
            assert SECRET.encode() not in answer.content


def test_another_teams_member_finds_nothing_at_any_objects_address(
    world: World, objects: dict[str, dict[str, Any]]
) -> None:
    eve = Client()
    eve.force_login(world.eve)
    for name in OBJECTS:
        address = _address(name, objects)
        answers = _every_method(eve, address)
        statuses = {method: answer.status_code for method, answer in answers.items()}
        assert set(statuses.values()) <= {404, 405}, (address, statuses)
        assert 404 in statuses.values(), (address, statuses)
        assert all(SECRET.encode() not in answer.content for answer in answers.values())


def test_its_own_member_finds_each_object(world: World, objects: dict[str, dict[str, Any]]) -> None:
    root = Client()
    root.force_login(world.root)
    for name, kind in OBJECTS.items():
        if kind != "token":  # one's own alone, not even an admin's
            with transaction.atomic():
                answers = _every_method(root, _address(name, objects)).values()
                transaction.set_rollback(True)  # what one removes, the next one needs
            assert {answer.status_code for answer in answers} - {404, 405}, name


def test_no_list_and_no_page_names_another_teams_objects(
    world: World, objects: dict[str, dict[str, Any]]
) -> None:
    world.eve.set_password("a long password of eve's")  # without one, nothing can be changed
    world.eve.save()
    eve = Client()
    eve.force_login(world.eve)
    for name in SIGNED_IN:
        address = _address(name, objects)
        answer = eve.get(address)
        assert answer.status_code in {200, 302, 400, 403, 405}, (address, answer.status_code)
        text = b"".join(answer) if answer.streaming else answer.content
        for secret in (SECRET, str(objects["job"]["uid"]), objects["token"]["key"], "Vision"):
            assert secret.encode() not in text, (address, secret)
