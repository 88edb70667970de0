"""A team below its quota takes it back: both sides are told, and nobody loses what was saved."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.conftest import Portal
from tests.e2e.test_journey import curl

SAVING = """\
saved="$KILTER_CHECKPOINT_DIR/state"
[ -e "$saved" ] && echo "goes on from $(cat "$saved")" || echo "begins"
trap 'echo step 7 > "$saved"; echo saved; exit 143' TERM
while :; do sleep 0.2; done
"""
OWNED = {"tenant": "owner", "cluster": "this-machine", "flavor": "cpu"}


@pytest.fixture
def token(portal: Portal) -> Iterator[str]:
    """Two teams of which one owns all cores; jobs make room at once, and save within seconds."""
    token = portal.manage("token", "admin")
    ask(portal, token, "/api/v1/clusters/this-machine/policy/", patience(0, 0, 5), "PATCH")
    for slug in ("owner", "borrower"):
        ask(
            portal,
            token,
            "/api/v1/tenants/",
            {"slug": slug, "name": slug, "parent": "organisation"},
        )
    lines = [
        {**OWNED, "nominal": cores(portal, token)},
        {**OWNED, "tenant": "borrower", "nominal": 0},
    ]
    keys = [ask(portal, token, "/api/v1/quotas/", line)["id"] for line in lines]
    yield token
    for key in keys:
        ask(portal, token, f"/api/v1/quotas/{key}/", {}, "DELETE")
    ask(portal, token, "/api/v1/clusters/this-machine/policy/", patience(60, 600, 30), "PATCH")


def patience(delay_s: float, runtime_s: float, grace_s: float) -> dict[str, float]:
    return {
        "preempt_delay_s": delay_s,
        "preempt_min_runtime_s": runtime_s,
        "preempt_grace_s": grace_s,
    }


def cores(portal: Portal, token: str) -> int:
    (node,) = curl(portal, token, "/api/v1/nodes/?cluster=this-machine")["results"]
    return int(node["cpu_milli"])


def ask(
    portal: Portal, token: str, path: str, body: dict[str, Any], method: str = "POST"
) -> dict[str, Any]:
    return curl(portal, token, path, "-X", method, "-d", json.dumps(body))


def state_is(page: Page, state: str, *, within_s: int = 30) -> None:
    badge = page.locator("#job-state [data-state]")
    expect(badge).to_have_attribute("data-state", state, timeout=within_s * 1000)


def submit(page: Page, tenant: str, command: str, cpu: str) -> str:
    """Ask by the form and return the address of the job's page."""
    page.goto("/jobs/new/")
    page.fill("[name=name]", f"of-{tenant}")
    page.select_option("[name=tenant]", tenant)
    page.fill("[name=command]", command)
    page.fill("[name=cpu_milli]", cpu)
    page.fill("[name=memory_mib]", "64MiB")
    page.click("form button[type=submit].btn-primary")
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}/"))
    return page.url


def test_an_owner_claims_its_cores_back_and_the_borrower_goes_on_later(
    page: Page, portal: Portal, token: str
) -> None:
    borrower = submit(page, "borrower", SAVING, f"{cores(portal, token)}m")
    state_is(page, "running")
    expect(page.locator("[data-log]")).to_contain_text("begins", timeout=20_000)

    owner = submit(page, "owner", "echo mine; sleep 8", "1")
    state_is(page, "running")

    page.goto(borrower)
    state_is(page, "queued")
    expect(page.locator("main")).to_contain_text("A tenant claimed its quota back")
    expect(page.locator("[data-preempted]")).to_contain_text("Preempted once")
    expect(page.locator("[data-checkpoint]")).to_contain_text("Last checkpoint")

    page.goto(owner)
    state_is(page, "succeeded")
    page.goto(borrower)
    state_is(page, "running")
    expect(page.locator("[data-log]")).to_contain_text("goes on from step 7", timeout=20_000)
    page.goto("/jobs/?tenant=borrower")
    expect(page.locator("main")).to_contain_text("preempted once")
    uid = borrower.rstrip("/").rsplit("/", 1)[1]
    ask(portal, token, f"/api/v1/jobs/{uid}/cancel/", {})
