"""The whole journey, as a researcher makes it: by browser, and by the README's curl lines."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.e2e.conftest import ROOT, Portal

COMMAND = "for i in 1 2 3 4 5 6; do echo step $i; sleep 1; done; echo done"


def ask(page: Page, name: str, command: str) -> None:
    page.goto("/jobs/new/")
    page.fill("[name=name]", name)
    page.fill("[name=command]", command)
    page.fill("[name=memory_mib]", "512MiB")
    page.locator("[name=memory_mib]").blur()


def test_from_sign_in_to_booked_usage(page: Page) -> None:
    ask(page, "journey", COMMAND)
    expect(page.locator("[data-verdict]")).to_have_attribute("data-verdict", "now", timeout=15_000)
    page.click("form button[type=submit].btn-primary")
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}/"))
    log = page.locator("[data-log]")
    expect(log).to_contain_text("step 1", timeout=20_000)
    expect(log).not_to_contain_text("done")  # it grows while we watch
    expect(page.locator("[data-state]").first).to_have_attribute("data-state", "running")
    expect(log).to_contain_text("done", timeout=30_000)
    expect(page.locator("[data-state]").first).to_have_attribute(
        "data-state", "succeeded", timeout=20_000
    )
    page.goto("/usage/")
    expect(page.locator("main")).to_contain_text("cpu")


def test_the_fleet_changes_while_a_job_runs(page: Page, portal: Portal) -> None:
    page.goto("/fleet/this-machine/")
    expect(page.locator("body")).to_have_attribute("data-live", "live", timeout=15_000)
    cluster = page.locator("main")
    expect(cluster).to_contain_text(re.compile("0 running|running", re.IGNORECASE))
    token = portal.manage("token", "admin")
    before = node_allocation(portal, token)
    post_job(portal, token, {"name": "grid", "command": "sleep 8", "cpu_milli": 1000})
    deadline = time.monotonic() + 10
    while node_allocation(portal, token) == before and time.monotonic() < deadline:
        time.sleep(0.2)
    assert node_allocation(portal, token) == before + 1000


def test_the_demo_grid_is_live_and_says_that_it_is_invented(page: Page) -> None:
    page.goto("/fleet/demo/")
    expect(page.locator("body")).to_have_attribute("data-live", "live", timeout=15_000)
    expect(page.locator("main")).to_contain_text(re.compile("simulated", re.IGNORECASE))
    expect(page.locator("[data-device]").first).to_be_visible()


def test_a_lost_connection_shows_as_stale_and_comes_back(page: Page) -> None:
    page.goto("/fleet/demo/")
    body = page.locator("body")
    expect(body).to_have_attribute("data-live", "live", timeout=15_000)
    page.context.set_offline(True)
    expect(body).to_have_attribute("data-live", re.compile("stale|connecting"), timeout=30_000)
    page.context.set_offline(False)
    expect(body).to_have_attribute("data-live", "live", timeout=40_000)


def test_a_running_job_is_cancelled_from_its_page(page: Page) -> None:
    ask(page, "to-cancel", "sleep 300")
    page.click("form button[type=submit].btn-primary")
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}/"))
    expect(page.locator("[data-state]").first).to_have_attribute(
        "data-state", "running", timeout=20_000
    )
    page.click("[data-action=cancel]")
    page.click("[data-action=confirm-cancel]")
    expect(page.locator("[data-state]").first).to_have_attribute(
        "data-state", "cancelled", timeout=30_000
    )


def test_a_job_that_never_fits_is_refused_with_a_remedy_and_nothing_typed_is_lost(
    page: Page,
) -> None:
    ask(page, "too-big", "true")
    page.fill("[name=memory_mib]", "40TiB")
    page.locator("[name=memory_mib]").blur()
    expect(page.locator("[data-verdict]")).to_have_attribute(
        "data-verdict", "never", timeout=15_000
    )
    page.click("form button[type=submit].btn-primary")
    expect(page.locator("[name=memory_mib]")).to_have_value("40TiB")
    expect(page.locator("[name=name]")).to_have_value("too-big")


def test_the_curl_lines_of_the_readme_work_as_they_stand(portal: Portal) -> None:
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"<!-- curl -->\s*```sh\n(.*?)```", readme, re.DOTALL)
    assert block, "the README has no marked block of curl lines"
    script = block[1].replace("http://127.0.0.1:8000", portal.url)
    script = script.replace(".venv/bin/python", "python")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env={**os.environ, "KILTER_DATA": str(portal.folder), "PATH": venv_path()},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "succeeded" in done.stdout
    assert "hello" in done.stdout


def test_a_real_training_run_ends_well_beside_the_invented_jobs(portal: Portal) -> None:
    token = portal.manage("token", "admin")
    command = f"{sys.executable} {ROOT}/examples/train_numpy.py --steps 60"
    job = post_job(portal, token, {"name": "train", "kind": "training", "command": command})
    deadline = time.monotonic() + 60
    while job["state"] not in {"succeeded", "failed"} and time.monotonic() < deadline:
        time.sleep(0.5)
        job = curl(portal, token, f"/api/v1/jobs/{job['uid']}/")
    assert job["state"] == "succeeded", job
    demo = "/api/v1/jobs/?cluster=demo&state=running"
    while curl(portal, token, demo)["count"] == 0 and time.monotonic() < deadline:
        time.sleep(0.5)  # the first invented jobs arrive some seconds after the start
    assert curl(portal, token, demo)["count"] > 0
    usage = curl(portal, token, "/api/v1/usage/?cluster=this-machine")["results"]
    assert sum(row["allocated_milli_us"] for row in usage) > 0


def venv_path() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def post_job(portal: Portal, token: str, fields: dict[str, Any]) -> dict[str, Any]:
    body = {"tenant": "organisation", **fields}
    answer = curl(portal, token, "/api/v1/jobs/", "-d", json.dumps(body))
    assert "uid" in answer, answer
    return answer


def node_allocation(portal: Portal, token: str) -> int:
    rows = curl(portal, token, "/api/v1/nodes/?cluster=this-machine")["results"]
    return sum(row["allocated_cpu_milli"] for row in rows)


def curl(portal: Portal, token: str, path: str, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [
            "curl",
            "-sS",
            "-H",
            f"Authorization: Token {token}",
            "-H",
            "Content-Type: application/json",
            portal.url + path,
            *more,
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    answer: dict[str, Any] = json.loads(done.stdout or "{}")
    return answer
