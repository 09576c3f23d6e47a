"""A real headless Chromium for the tests of the page, or the reason why there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
INSTALL = "`make browser` installs Debian's, as root; ACP_MANIFOLD_BROWSER may name another"


@contextmanager
def chromium() -> Generator[Browser]:
    """The browser; skips the test, with the reason, where none can be had.

    What ACP_MANIFOLD_BROWSER names has to start: that one is never skipped.
    """
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        named = os.environ.get("ACP_MANIFOLD_BROWSER")
        own = Path(driver.chromium.executable_path)
        program = named or next(filter(None, map(shutil.which, PROGRAMS)), None) or (str(own) if own.exists() else None)
        if program is None:
            pytest.skip(f"no Chromium is installed: {INSTALL}")
        # Root has no sandbox to start it in; what it opens is the test's own page.
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
