"""Takes the README's pictures from a running portal.

    .venv/bin/python scripts/pictures.py http://127.0.0.1:8000 PASSWORD

It submits a training run of its own, so that there is a job to show; the demo fleet shows the rest.
"""

import os
import re
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
SIZE: ViewportSize = {"width": 1280, "height": 800}
FLAGS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
TRAINING = """python3 -u - <<'END'
import random, time

weight, bias = 0.0, 0.0
for step in range(2000):
    x = random.uniform(-1, 1)
    error = weight * x + bias - (3 * x + 1 + random.gauss(0, 0.1))
    weight -= 0.05 * error * x
    bias -= 0.05 * error
    if step % 10 == 0:
        print(f"step {step} weight {weight:.3f} bias {bias:.3f} loss {error * error:.5f}")
    time.sleep(0.05)
END"""


def main() -> None:
    """Take every picture."""
    url, password = sys.argv[1:3]
    flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else FLAGS
    IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        path = os.environ.get("KILTER_CHROMIUM") or None
        browser = playwright.chromium.launch(executable_path=path, args=flags)
        light = signed_in(browser, url, password, theme="light", locale="en-GB")
        dark = signed_in(browser, url, password, theme="dark", locale="en-GB")
        chinese = signed_in(browser, url, password, theme="light", locale="zh-CN")
        job = submit(light)
        take(light, "/fleet/demo/", "fleet-light")
        take(light, "/jobs/?cluster=demo&state=queued&state=running", "jobs-light")
        ask(light)
        take(dark, job, "job-dark", wait_ms=20_000)
        take(chinese, "/fairness/demo/", "fairness-zh")
        browser.close()


def signed_in(
    browser: Browser, url: str, password: str, *, theme: Literal["light", "dark"], locale: str
) -> Page:
    """Return a page of its own session."""
    context = browser.new_context(
        base_url=url, viewport=SIZE, color_scheme=theme, locale=locale, timezone_id="UTC"
    )
    page = context.new_page()
    page.goto("/accounts/login/")
    page.fill("input[name=login]", "admin")
    page.fill("input[name=password]", password)
    page.click("main button[type=submit]")
    page.wait_for_url(re.compile(r"/$"))
    return page


def submit(page: Page) -> str:
    """Submit the training run and return its page's path."""
    page.goto("/jobs/new/")
    page.fill("[name=name]", "train-sine")
    page.select_option("[name=kind]", "training")
    page.fill("[name=command]", TRAINING)
    page.click("form button[type=submit].btn-primary")
    page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}/"))
    return page.url


def ask(page: Page) -> None:
    """Fill the form with a request for the demo fleet, and take it with its estimate."""
    page.goto("/jobs/new/?cluster=demo")
    page.select_option("[name=cluster]", "demo")
    page.wait_for_timeout(1500)
    page.fill("[name=name]", "finetune-llm")
    page.fill("[name=command]", "torchrun train.py --config base.yaml")
    page.fill("[name=devices]", "8")
    page.fill("[name=replicas]", "4")
    page.locator("[name=replicas]").blur()
    page.wait_for_timeout(4000)
    page.screenshot(path=IMAGES / "request-light.png")


def take(page: Page, path: str, name: str, *, wait_ms: int = 4000) -> None:
    """Open a page, let it come alive, and keep what is seen."""
    page.goto(path)
    page.wait_for_timeout(wait_ms)
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
