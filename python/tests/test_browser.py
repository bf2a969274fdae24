"""The fabric in the browser: the page gives the native program's digests, asks nobody, and lets a spine die.

Needs the page (`make browser`), a Chromium or Chrome on the PATH, and playwright from PyPI; without them these tests are skipped
and say so. The program is taken from the environment variable ROPEWALK, else from target/release.
"""

import gzip
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROPEWALK = Path(os.environ.get("ROPEWALK", ROOT / "target" / "release" / "ropewalk"))
PAGE = ROOT / "target" / "browser" / "ropewalk.html"
SITE = ROOT / "target" / "site"
LEFT_OUT = PAGE.with_name("left-out")
WHY = LEFT_OUT.read_text().strip() if LEFT_OUT.is_file() else "make browser makes it"
LIMIT = 1_500_000  # bytes of the page, compressed

pytestmark = [
    pytest.mark.skipif(not PAGE.is_file(), reason=f"no page with the engine in the browser: {WHY}"),
    pytest.mark.skipif(not ROPEWALK.is_file(), reason=f"no program at {ROPEWALK}: make build, or set ROPEWALK"),
]

# Each test plays from a given time, and without the clock of the browser.
SMALL = "size=256kB&pause"


class Opened:
    """The page in a browser. At its end there was no complaint, and no request but for the page's own file."""

    def __init__(self, browser, fragment=SMALL, width=1440, scheme="light", place=PAGE):
        self.complaints, self.requests = [], []
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.context.set_default_timeout(120_000)  # ms, on a busy machine
        self.page = self.context.new_page()
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.context.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(f"{place.as_uri()}#{fragment}")
        self.page.wait_for_selector("html[data-ready]", state="attached")

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.context.close()
        if raised[0] is None:
            assert self.complaints == []
            own = ("data:", "blob:")  # from the page itself
            assert [url.partition("#")[0] for url in self.requests if not url.startswith(own)] == [PAGE.as_uri()]

    def digest(self):
        return self.page.evaluate("document.documentElement.dataset.digest")

    def command(self):
        return self.page.locator("#command").inner_text()

    def changes(self, act):
        """The digest after an action that runs the scenario again."""
        before = self.digest()
        act()
        changed = "before => !document.body.classList.contains('busy') && document.documentElement.dataset.digest !== before"
        self.page.wait_for_function(changed, arg=before)
        return self.digest()

    def drag(self, slider, steps):
        """Moves a slider by some steps, with the keyboard, as a hand would with the mouse."""
        self.page.focus(slider)
        for _ in range(abs(steps)):
            self.page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft")


def native(command, folder):
    """The digest of a command that the page shows."""
    words = shlex.split(command)
    assert words[:2] == ["ropewalk", "run"]
    done = subprocess.run([ROPEWALK, *words[1:], "--json"], cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["digest"]


def test_the_page_is_one_small_file():
    page = PAGE.read_bytes()
    assert len(gzip.compress(page, 9)) <= LIMIT
    assert not re.search(rb"(src|href)=[\"']?(https?:)?//", page)


def test_quickstart_has_the_native_digest(browser, tmp_path):
    with Opened(browser, "pause") as opened:
        assert opened.command() == "ropewalk run quickstart"
        assert opened.digest() == native(opened.command(), tmp_path)
        # No test asserts a time; docs/browser.md has this one, measured on an idle machine.
        opening, run = opened.page.evaluate("[document.documentElement.dataset.ready, state.run.took]")
        print(f"quickstart in the browser: {run:.0f} ms, drawn {opening} ms after the page was opened")


@pytest.mark.parametrize("scheme", ["ecmp", "rps"])
def test_scheme_loss_and_speed_have_the_native_digest(browser, tmp_path, scheme):
    with Opened(browser) as opened:
        digests = [opened.digest(), opened.changes(lambda: opened.page.select_option("#scheme", scheme))]
        digests.append(opened.changes(lambda: opened.drag("#loss", 4)))
        digests.append(opened.changes(lambda: opened.drag("#rate", 1)))
        command = opened.command()
        assert f"scheme.{scheme}=" in command and "links.loss=0.001" in command and "rate=200Gbps" in command
        assert opened.digest() == native(command, tmp_path)
        assert len(set(digests)) == 4


def test_a_spine_is_killed_while_the_run_plays(browser, tmp_path):
    with Opened(browser, "size=1MB") as opened:
        page = opened.page
        page.wait_for_function("() => state.time > 5")
        before = page.evaluate("Array.from(state.events.times.get('nack-sent') ?? []).filter((at) => at < 5)")
        opened.changes(lambda: page.get_by_role("button", name="Kill spine1").click())
        kill = page.evaluate("state.kills[0]")
        assert kill["name"] == "spine1" and kill["at"] >= 5
        # The run plays on from the time of the death, and was the same until then.
        assert page.evaluate("state.playing && state.time") >= kill["at"]
        assert page.evaluate("Array.from(state.events.times.get('nack-sent') ?? []).filter((at) => at < 5)") == before
        page.wait_for_function("at => state.time > at + 1", arg=kill["at"])
        spine = page.evaluate("state.run.nodes.indexOf('spine1')")
        assert page.evaluate("node => fabric.dead(node, state.time)", spine)
        assert page.evaluate("([node, at]) => fabric.dead(node, at - 0.1)", [spine, kill["at"]]) is False
        assert page.get_by_role("button", name="Revive spine1").is_visible()
        assert opened.digest() == native(opened.command(), tmp_path)
        # A spine that lives again has an end of its failure.
        opened.changes(lambda: page.get_by_role("button", name="Revive spine1").click())
        assert "until=" in opened.command()
        assert opened.digest() == native(opened.command(), tmp_path)


def test_a_gray_link_is_drawn_while_it_loses_packets(browser):
    text = (
        '[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[[workload]]\npermutation = { bytes = "400kB" }\n'
        '[[failure]]\nlinks = [["leaf0", "spine1"]]\nloss = 0.1\nat = "10us"\nuntil = "20us"\n'
    )
    with Opened(browser) as opened:
        page = opened.page
        page.locator("#own summary").click()
        page.locator("#text").fill(text)
        opened.changes(lambda: page.click("#run-text"))
        gray = "time => state.run.column['link.from'].reduce((all, _, link) => all + fabric.gray(link, time), 0)"
        # Both directions of the cable.
        assert [page.evaluate(gray, time) for time in (9.9, 10.1, 19.9, 20.1)] == [0, 2, 2, 0]


def test_a_click_on_a_spine_kills_it_too(browser):
    with Opened(browser) as opened:
        page = opened.page
        page.evaluate("state.time = 10")
        page.wait_for_function("() => fabric.at && fabric.at.length > 0")
        at = page.evaluate("fabric.at[state.run.nodes.indexOf('spine2')]")
        opened.changes(lambda: page.locator("#fabric").click(position=at))
        assert page.evaluate("state.kills.map(({ name }) => name)") == ["spine2"]


def test_packets_and_blocked_nacks_are_those_of_the_run(browser):
    with Opened(browser, "loss=0.001&size=1MB&pause") as opened:
        page = opened.page
        summary = page.evaluate("state.run.summary")
        assert summary["scheme"] == "themis" and summary["control"]["blocked"] > 0
        flows = page.evaluate("state.run.column['flow.from'].length")
        done = lost = 0
        for flow in range(flows):
            page.evaluate("flow => follow(flow)", flow)
            ways = page.evaluate("state.ways.filter((way) => way.kind === 'data').map(({ done, lost, hops }) => [done, lost, hops.length])")
            assert all(done != lost for done, lost, _ in ways), "every packet arrives or is lost"
            assert all(hops == 4 for done, _, hops in ways if done), "host, leaf, spine, leaf"
            done += sum(way[0] for way in ways)
            lost += sum(way[1] for way in ways)
        assert done + lost == summary["packets"]["sent"] and lost == summary["packets"]["dropped_link"]
        assert page.evaluate("state.nacks.blocked.at(-1)") == summary["control"]["blocked"]
        assert page.evaluate("state.nacks.sent.at(-1)") == summary["control"]["nack"]
        assert page.evaluate("state.queues.length") > 0
        assert page.evaluate("Math.max(...state.rates.flatMap(({ values }) => values))") > 10


def test_the_address_holds_the_scenario(browser, tmp_path):
    with Opened(browser) as opened:
        opened.changes(lambda: opened.page.select_option("#scheme", "ecmp"))
        opened.page.evaluate("state.time = 12.5")
        digest = opened.changes(lambda: opened.page.get_by_role("button", name="Kill spine0").click())
        address = opened.page.evaluate("location.hash.slice(1)")
    with Opened(browser, address) as opened:
        assert opened.digest() == digest
    text = '[topology.leaf-spine]\nleaves = 2\nspines = 2\nhosts-per-leaf = 2\n[[workload]]\nincast = { senders = 2, bytes = "100kB" }\n'
    (tmp_path / "mine.toml").write_text(text)
    with Opened(browser) as opened:
        opened.page.locator("#own summary").click()
        opened.page.locator("#text").fill(text)
        digest = opened.changes(lambda: opened.page.click("#run-text"))
        assert digest == native("ropewalk run mine.toml", tmp_path)
        address = opened.page.evaluate("location.hash.slice(1)")
    with Opened(browser, address) as opened:
        assert opened.digest() == digest
        assert opened.page.locator("#text").input_value() == text


def test_a_mistake_is_shown_with_its_place(browser):
    with Opened(browser) as opened:
        opened.page.locator("#own summary").click()
        opened.page.locator("#text").fill("[topology.leaf-spine]\nleafs = 2\n")
        opened.page.click("#run-text")
        opened.page.wait_for_function("() => document.querySelector('#message').textContent.startsWith('mine.toml:2:1: ')")
        assert "leaves" in opened.page.locator("#message").inner_text()
        # The last run plays on, and its other flows can be followed.
        opened.page.evaluate("window.old = state.ways")
        opened.page.locator("#flow").select_option("1")
        opened.page.wait_for_function("() => state.ways !== window.old && state.ways.length > 0")


def test_schemes_are_learnt_even_if_a_run_interrupts_the_question(browser):
    with Opened(browser, SMALL) as opened:
        opened.page.wait_for_function("() => document.querySelectorAll('#scheme option').length > 15")
        # The next run begins while the schemes of the text are asked for.
        opened.page.evaluate("() => { state.learnt = null; $('scheme').replaceChildren(); learn(); rerun(false); }")
        opened.page.wait_for_function("() => document.querySelectorAll('#scheme option').length > 15")


def test_a_damaged_address_runs_its_scenario_and_says_so(browser):
    with Opened(browser, f"{SMALL}&text=@@") as opened:
        assert opened.page.locator("#message").inner_text().startswith("The address holds a damaged scenario")
        assert opened.command().startswith("ropewalk run quickstart")


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (800, "dark"), (390, "light"), (390, "dark")])
def test_it_fits_while_a_spine_dies(browser, width, scheme):
    with Opened(browser, "size=256kB&kill=spine1@10&t=14&pause", width, scheme) as opened:
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        # Every picture has something on it.
        opened.page.wait_for_function(
            "() => [...document.querySelectorAll('canvas')].every((c) =>"
            " c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some((value) => value > 0))")


def test_a_large_fabric_is_not_drawn_and_the_charts_work(browser, tmp_path):
    sets = "leaf-spine={leaves=24,spines=4,hosts-per-leaf=16}"
    text = f'[topology]\n{sets}\n[[workload]]\nincast = {{ senders = 8, bytes = "50kB" }}\n'
    with Opened(browser) as opened:
        opened.page.locator("#own summary").click()
        opened.page.locator("#text").fill(text)
        opened.changes(lambda: opened.page.click("#run-text"))
        assert opened.page.evaluate("[fabric.drawn, state.run.nodes.length]") == [False, 24 * 17 + 4]
        assert opened.page.evaluate("state.rates.length") == 8


@pytest.mark.skipif(not (SITE / "fabric.html").is_file(), reason=f"no page with the engine in the site at {SITE}: make docs")
@pytest.mark.parametrize("page", ["index.html", "browser.html"])
def test_the_documentation_shows_it_in_a_frame(browser, page):
    context = browser.new_context(viewport={"width": 800, "height": 900})
    context.set_default_timeout(120_000)
    site = context.new_page()
    complaints = []
    site.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
    site.on("pageerror", lambda e: complaints.append(str(e)))
    site.goto((SITE / page).as_uri())
    inside = site.frame_locator("iframe.fabric")
    inside.locator("html[data-ready]").wait_for(state="attached")
    # The frame is as high as the page in it.
    site.wait_for_function("() => document.querySelector('iframe.fabric').style.height !== ''")
    assert inside.locator("html").evaluate("(page) => page.scrollHeight <= page.clientHeight")
    before = inside.locator("html").get_attribute("data-digest")
    inside.locator("#scheme").select_option("ecmp")
    inside.locator(f"html:not([data-digest='{before}'])").wait_for(state="attached")
    assert complaints == []
    context.close()
