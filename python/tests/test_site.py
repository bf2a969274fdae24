"""The documentation site as its readers have it: from the disk, without a server or a network.

    make docs, or mkdocs build --strict       builds target/site
    pytest python/tests/test_site.py

The tests of the search need a Chromium or Chrome on the PATH, and playwright from PyPI; without them they are skipped.
"""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "target" / "site"

pytestmark = pytest.mark.skipif(not (SITE / "index.html").is_file(), reason=f"no site at {SITE}: make docs")


class Page(HTMLParser):
    """Links, loaded files and anchors of a page."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        self.anchors.update(of[key] for key in ("id", "name") if of.get(key))
        if tag == "a" and of.get("href"):
            self.links.append(of["href"])
        elif tag == "link" and of.get("href") and "canonical" not in of.get("rel", ""):
            self.loads.append(of["href"])
        elif of.get("src"):
            self.loads.append(of["src"])


@pytest.fixture(scope="module")
def pages():
    # The page for missing addresses is for servers, and its links begin at the server's root.
    return {file: Page(file) for file in sorted(SITE.rglob("*.html")) if file.name != "404.html"}


def test_every_link_inside_the_site_leads_somewhere(pages):
    assert len(pages) > 60
    dead = []
    for file, page in pages.items():
        for link in page.links + page.loads:
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            target = (file.parent / unquote(to.path)).resolve() if to.path else file
            anchor = unquote(to.fragment)
            if not target.is_file():
                dead.append(f"{file.relative_to(SITE)}: {link}: no such file")
            elif target.name == "fabric.html":
                continue  # what follows its `#` is a scenario
            elif anchor and target in pages and anchor not in pages[target].anchors:
                dead.append(f"{file.relative_to(SITE)}: {link}: no such anchor")
    assert dead == []


def test_pages_load_nothing_from_elsewhere(pages):
    elsewhere = [f"{file.relative_to(SITE)}: {load}" for file, page in pages.items() for load in page.loads if "//" in load]
    assert elsewhere == []


def test_committed_pictures_stay_small():
    pictures = [p for p in (ROOT / "docs").rglob("*") if p.suffix in (".png", ".svg", ".jpg", ".gif", ".webp")]
    assert sum(p.stat().st_size for p in pictures) < 1_000_000, pictures


# The search finds a word of a text, and a key that only generated text has.
@pytest.mark.parametrize(
    ("start", "words", "found"),
    [
        ("index.html", "headroom", "glossary.html"),
        ("schemes/themis.html", "rate-increase-timer", "nics/congestion.html"),
        ("scenario/nic.html", "snap-length", "scenario/run.html"),
    ],
)
def test_the_search_works_from_the_disk(browser, start, words, found):
    page = browser.new_page()
    complaints, requests = [], []
    page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.on("request", lambda r: requests.append(r.url))
    page.goto((SITE / start).as_uri())
    page.click("input.md-search__input")
    page.keyboard.type(words)
    page.wait_for_selector(".md-search-result__link", timeout=30_000)
    results = [link.get_attribute("href") for link in page.query_selector_all(".md-search-result__link")]
    assert any(f"/{found}" in result for result in results), results
    page.click(f'.md-search-result__link[href*="/{found}"]')
    page.wait_for_url(f"**/{found}*")
    assert words in page.inner_text("article")
    elsewhere = [url for url in requests if not url.startswith(("file:", "data:", "blob:", "about:"))]
    assert complaints == [] and elsewhere == []
    page.close()
