"""Makes the pictures of docs/gallery.md anew: runs the page's commands and Python blocks, and photographs the pages.

    make gallery

Needs playwright and a Chromium or Chrome on the PATH. ROPEWALK names the program. Each picture carries the digests of the runs
that it shows, so a test tells a picture of another build.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "gallery.md"
PICTURES = DOCS / "images" / "gallery"
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
# Pixels per CSS pixel, and colours of a picture's palette. Our choice: sharp on most screens, and about 50 kB each.
SCALE = 1.5
COLOURS = 256
# Field of a PNG file with the digests of the runs that it shows.
RUNS = "ropewalk runs"
# Ends a Python block of the page: it prints the digests of its results.
TELL = """
for found in [one for value in list(globals().values()) for one in (value if isinstance(value, rw.Comparison) else [value])]:
    if isinstance(found, rw.Result | rw.Sweep):
        print(found.digest)
"""
# CSS pixels above and below a part of a page. Our choice: no half line of the text around it.
MARGIN = 4


@dataclass(frozen=True)
class Shot:
    """A part of a page that is photographed: from the top of `first` to the bottom of `last`."""

    page: str
    first: str
    last: str
    width: int = 900
    scheme: str = "light"


SHOTS = {
    "comparison": Shot("schemes.html", "h1", "#table", width=1280),
    "flow-times": Shot("schemes.html", "#flows", "#flows"),
    "phone": Shot("schemes.html", "h1", "#table", width=390, scheme="dark"),
    "packet-order": Shot("sprayed.html", "#arrivals", "#arrivals"),
    "over-time": Shot("sprayed.html", "#time", "#time"),
    "large-fabric": Shot("large.html", "#matrices h3 >> nth=-1", "#matrices figcaption"),
    "sweep": Shot("grid.html", "#points", "#points .chart"),
    "paper": Shot("fig1.html", "#paper", "#paper .chart"),
    "training": Shot("step.html", "#steps", "#steps"),
}


def commands(text: str) -> Iterator[str]:
    """The commands of the page's console blocks."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in re.sub(r"\\\n +", "", block).split("\n"):
            if line.startswith("$ "):
                yield line[2:]


def files(text: str) -> dict[str, str]:
    """The page's blocks with a title."""
    return dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL))


def blocks(text: str) -> list[str]:
    """The page's Python blocks."""
    return re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shown(text: str) -> list[str]:
    """Names of the pictures on the page."""
    return re.findall(r"\(images/gallery/([^)]+)\.png\)", text)


def digests(page: str) -> list[str]:
    """Digests of the runs or of the sweep on a page of ropewalk."""
    return sorted(set(re.findall(r"[0-9a-f]{16,}", " ".join(re.findall(r'"digests?":(?:\[[^]]*\]|"[^"]*")', page)))))


def make(place: Path, program: Path) -> dict[str, list[str]]:
    """Runs all commands and Python blocks of the page in `place`. Returns the digests of each picture's runs."""
    tools = place / "bin"
    tools.mkdir()
    (tools / "ropewalk").symlink_to(program)
    env = os.environ | {"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "Agg"}
    text = PAGE.read_text()
    for name, content in files(text).items():
        (place / name).write_text(content)
    for command in commands(text):
        subprocess.run(["bash", "-c", command], cwd=place, env=env, check=True, stdout=subprocess.DEVNULL)
    runs = {name: digests((place / shot.page).read_text()) for name, shot in SHOTS.items()}
    for block in blocks(text):
        told = subprocess.run([sys.executable, "-c", block + TELL], cwd=place, env=env, check=True, capture_output=True, text=True)
        runs[re.findall(r'savefig\("([^"]+)\.png"\)', block)[0]] = sorted(told.stdout.split())
    return runs


def carried(picture: Path) -> list[str]:
    """Digests of the runs that a picture shows."""
    from PIL import Image

    return Image.open(picture).text[RUNS].split()


def shrink(file: Path, to: Path, runs: list[str]) -> None:
    from PIL import Image, PngImagePlugin

    picture = Image.open(file).convert("RGB")
    # The colours of small parts, such as a line's, stay with this method.
    shown = PngImagePlugin.PngInfo()
    shown.add_text(RUNS, " ".join(runs))
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(to, optimize=True, pnginfo=shown)
    print(f"{to.name}: {picture.width} x {picture.height}, {to.stat().st_size // 1000} kB")


def photograph(place: Path) -> None:
    from playwright.sync_api import sync_playwright

    program = next((path for path in map(shutil.which, BROWSERS) if path), None)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, shot in SHOTS.items():
            size = {"width": shot.width, "height": 900}
            context = browser.new_context(viewport=size, color_scheme=shot.scheme, device_scale_factor=SCALE)
            page = context.new_page()
            page.goto((place / shot.page).as_uri())
            page.wait_for_selector("html[data-ready]", timeout=60_000, state="attached")
            ends = []
            for selector in (shot.first, shot.last):
                box = page.locator(selector).first.bounding_box()
                if box is None:
                    sys.exit(f"{shot.page} has no {selector}")
                ends.append(box)
            top, bottom = ends[0]["y"] - MARGIN, ends[1]["y"] + ends[1]["height"] + MARGIN
            clip = {"x": 0, "y": top, "width": shot.width, "height": bottom - top}
            page.screenshot(path=place / f"{name}.png", full_page=True, clip=clip)
            context.close()
        browser.close()


def main() -> None:
    program = Path(os.environ.get("ROPEWALK") or DOCS.parent / "target" / "release" / "ropewalk").resolve()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        runs = make(place, program)
        photograph(place)
        PICTURES.mkdir(parents=True, exist_ok=True)
        for name in shown(PAGE.read_text()):
            shrink(place / f"{name}.png", PICTURES / f"{name}.png", runs[name])


if __name__ == "__main__":
    main()
