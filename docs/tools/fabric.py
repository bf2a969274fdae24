"""The page that runs the engine in a browser, as a part of the site.

`make browser` makes the page; the site copies it to fabric.html and shows it in frames. A site that is built without the page
shows a drawing of Themis in its place, and the reason.
"""

from pathlib import Path

import pictures

ROOT = Path(__file__).resolve().parents[2]
MADE = ROOT / "target" / "browser" / "ropewalk.html"
NAME = "fabric.html"

# The page in the frame tells its height; a frame cannot measure what is inside it.
LISTEN = (
    '<script>addEventListener("message", ({ data, source }) => document.querySelectorAll("iframe.fabric").forEach((frame) => {'
    " if (frame.contentWindow === source && data.fabric > 0) frame.style.height = `${data.fabric}px`; }))</script>"
)


def add(files, config) -> None:
    """Puts the page into the site."""
    from mkdocs.structure.files import File

    if MADE.is_file():
        files.append(File.generated(config, NAME, content=MADE.read_text()))


def frame(settings: str) -> str:
    """A frame with the page; `settings` is the fragment of its address."""
    if not MADE.is_file():
        said = MADE.with_name("left-out")
        why = said.read_text().strip() if said.is_file() else "`make browser` makes it"
        return f"{pictures.draw('themis')}\n\nThis site has a drawing in place of the fabric in the browser: {why}."
    address = "&amp;".join([f"{NAME}#embed", *filter(None, settings.split("&"))])
    return (
        f'<iframe class="fabric" src="{address}" title="A fabric in the browser"></iframe>\n{LISTEN}\n\n'
        f"[Open it as a page of its own]({NAME}){{ .fabric-alone }}"
    )
