"""What several files of tests share."""

import shutil

import pytest

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


# It ends with its file of tests: as long as it runs, no other test may start an event loop.
@pytest.fixture(scope="module")
def browser():
    """A Chromium or Chrome. Without one, or without playwright, the tests that need it are skipped and say so."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.sync_playwright() as p:
        chromium = p.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield chromium
        chromium.close()
