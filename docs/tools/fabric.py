"""The page that runs the engine in a browser, as a part of the site.

`make browser` makes the page; the site copies it to fabric.html and shows it in frames. A site that is built without it names
the reason in each frame's place.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MADE = ROOT / "target" / "browser" / "ropewalk.html"
NAME = "fabric.html"


def add(files, config) -> None:
    """Puts the page into the site."""
    from mkdocs.structure.files import File

    if MADE.is_file():
        files.append(File.generated(config, NAME, content=MADE.read_text()))


def frame(settings: str) -> str:
    """A frame with the page; `settings` is the fragment of its address. The page tells the frame its height."""
    if not MADE.is_file():
        said = MADE.with_name("left-out")
        why = said.read_text().strip() if said.is_file() else "`make browser` makes it"
        return f'!!! note "The fabric in the browser is left out"\n\n    This site was built without the page: {why}.'
    address = "&amp;".join([f"{NAME}#embed", *filter(None, settings.split("&"))])
    return (
        f'<iframe class="fabric" src="{address}" title="A fabric in the browser" loading="lazy"></iframe>\n\n'
        f"[Open it as a page of its own]({NAME}){{ .fabric-alone }}"
    )
