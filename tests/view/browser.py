"""A real headless Chromium for the tests of the page, or the reason why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def program() -> str | None:
    """The browser: what ACP_MANIFOLD_BROWSER names, else the first that is installed."""
    return os.environ.get("ACP_MANIFOLD_BROWSER") or next(filter(None, map(shutil.which, PROGRAMS)), None)


def missing() -> str | None:
    """Why the page can't be tested here; None if it can. A browser that is named has to start."""
    if find_spec("playwright") is None:
        return "playwright is not installed"
    if program() is None:
        return "no Chromium is installed: `make browser` does that on Debian; or name one in ACP_MANIFOLD_BROWSER"
    return None


@contextmanager
def chromium() -> Generator[Browser]:
    """The browser, started."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Root has no sandbox to start it in; what it opens is the test's own page.
        browser = driver.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
