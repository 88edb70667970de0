"""Three people of different roles, made as an admin makes them, and what each may do."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Portal, sign_in

COMMAND = r"printf '<b>bold</b>\n\377 bad\nline\n'"


def make_person(page: Page, tenant: str, name: str, role: str) -> str:
    """Return the password that the page shows once."""
    page.goto(f"/admin/tenants/{tenant}/")
    page.fill("#person_username", name)
    page.select_option("#person_role", role)
    page.click("form[action$='/people/'] button[type=submit]")
    password = page.input_value("#new-password")
    page.goto(f"/admin/tenants/{tenant}/")
    expect(page.locator("#new-password")).to_have_count(0)
    return password


@pytest.fixture
def narrow(browser: Browser, portal: Portal) -> Iterator[Page]:
    """A phone that speaks Chinese; it is let go after the test."""
    context = browser.new_context(
        base_url=portal.url,
        locale="zh-CN",
        color_scheme="dark",
        viewport={"width": 375, "height": 760},
    )
    yield context.new_page()
    context.close()


def test_a_viewer_only_looks(page: Page, narrow: Page) -> None:
    sign_in(narrow, "vic", make_person(page, "language", "vic", "viewer"))
    expect(narrow.locator("html")).to_have_attribute("lang", "zh-hans")
    for path in ("/", "/jobs/", "/fleet/demo/", "/usage/", "/admin/quotas/?cluster=demo"):
        narrow.goto(path)
        wide = narrow.evaluate("document.documentElement.scrollWidth")
        assert wide <= 375, f"{path} is {wide} px wide"
        expect(narrow.locator("a[href='/jobs/new/']")).to_have_count(0)
    answer = narrow.goto("/admin/tenants/vision/")
    assert answer is not None
    assert answer.status == 404


def test_a_member_runs_a_job_whose_log_is_text_and_twice_pressed_is_once(
    page: Page, narrow: Page
) -> None:
    sign_in(narrow, "mo", make_person(page, "vision", "mo", "member"))
    narrow.goto("/jobs/new/")
    narrow.fill("[name=name]", "<i>mo</i>")
    narrow.fill("[name=command]", COMMAND)
    narrow.fill("[name=memory_mib]", "128MiB")
    narrow.evaluate("const b = document.querySelector('[data-submit]'); b.click(); b.click();")
    narrow.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}/"))
    log = narrow.locator("[data-log-lines]")
    expect(log).to_contain_text("<b>bold</b>", timeout=20_000)
    expect(log).to_contain_text("\ufffd bad")
    expect(log.locator("b")).to_have_count(0)
    expect(narrow.locator("h1")).to_contain_text("<i>mo</i>")
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 375
    narrow.goto("/jobs/?mine=true")
    expect(narrow.locator("[data-job]")).to_have_count(1)
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 375


def test_who_signs_out_elsewhere_is_led_to_the_door(page: Page, portal: Portal) -> None:
    del portal
    page.goto("/fleet/demo/")
    expect(page.locator("body")).to_have_attribute("data-live", "live", timeout=15_000)
    other = page.context.new_page()
    other.goto("/accounts/logout/")
    other.click("main form button[type=submit]")
    page.wait_for_url(re.compile(r"/accounts/login/\?next=/fleet/demo/"), timeout=30_000)
