"""Drawings of schemes in one style: a NIC, its ToR, four paths, the far ToR, the far NIC.

Colours come from the page (tools/style.css), so that a drawing follows its light or dark mode. A square is a data packet with its
PSN; its colour is its flow. A round mark is a reply. A drawing is a function in DRAWINGS that returns its caption.
"""

import html
from math import cos, pi, sin

WIDTH, HEIGHT = 560, 230
# Height of a drawing with notes below the fabric.
TALL = 262
SPINES = (36, 90, 146, 200)
MIDDLE = 118
# Centres of sender, its ToR, spines, far ToR, receiver.
X = (44, 146, 280, 414, 516)


class Page:
    """A drawing in layers, back to front."""

    def __init__(self) -> None:
        self.wires: list[str] = []
        self.nodes: list[str] = []
        self.marks: list[str] = []
        self.height = HEIGHT

    # --- the fabric

    def wire(self, x1: float, y1: float, x2: float, y2: float, kind: str = "wire") -> None:
        self.wires.append(f'<line class="{kind}" x1="{x1:.0f}" y1="{y1:.0f}" x2="{x2:.0f}" y2="{y2:.0f}"/>')

    def node(self, x: float, y: float, name: str, kind: str = "node", w: int = 52, h: int = 34) -> None:
        self.nodes.append(
            f'<rect class="{kind}" x="{x - w / 2:.0f}" y="{y - h / 2:.0f}" width="{w}" height="{h}" rx="6"/>'
            f'<text class="name" x="{x:.0f}" y="{y + 4.5:.1f}">{html.escape(name)}</text>'
        )

    def fabric(self, busy: dict[int, str] | None = None, acts: str = "") -> "Page":
        """Draws the usual fabric. `busy` gives paths another style (`dead`, `slow`). `acts` highlights the nodes that decide:
        `s`, `S`, `R`, `r` (sending NIC, its ToR, the far ToR, the receiver) and `m` (the spines)."""
        kind = lambda who: "node acts" if who in acts else "node"  # noqa: E731
        self.wire(X[0], MIDDLE, X[1], MIDDLE)
        self.wire(X[3], MIDDLE, X[4], MIDDLE)
        for path, y in enumerate(SPINES):
            style = "wire " + (busy or {}).get(path, "")
            self.wire(X[1], MIDDLE, X[2], y, style)
            self.wire(X[2], y, X[3], MIDDLE, style)
            self.node(X[2], y, "spine", kind("m"), 50, 26)
        self.node(X[0], MIDDLE, "NIC", kind("s"))
        self.node(X[1], MIDDLE, "ToR", kind("S"))
        self.node(X[3], MIDDLE, "ToR", kind("R"))
        self.node(X[4], MIDDLE, "NIC", kind("r"))
        return self

    @staticmethod
    def on(hop: int, path: int, t: float) -> tuple[float, float]:
        """Point on a hop (0 to 3) of a path; t from 0 to 1 covers the visible part of the wire."""
        ends = [(X[0], MIDDLE), (X[1], MIDDLE), (X[2], SPINES[path]), (X[3], MIDDLE), (X[4], MIDDLE)]
        (x1, y1), (x2, y2) = ends[hop], ends[hop + 1]
        t = 0.3 + 0.4 * t
        return x1 + (x2 - x1) * t, y1 + (y2 - y1) * t

    # --- what moves

    def packet(self, at: tuple[float, float], psn: object, flow: int = 0, kind: str = "") -> "Page":
        x, y = at
        self.marks.append(
            f'<rect class="packet f{flow} {kind}" x="{x - 9:.1f}" y="{y - 9:.1f}" width="18" height="18" rx="3"/>'
            f'<text class="psn {kind}" x="{x:.1f}" y="{y + 4:.1f}">{psn}</text>'
        )
        return self

    def packets(self, *places: tuple) -> "Page":
        """Draws packets, each given as (hop, path, t, PSN, flow)."""
        for hop, path, t, psn, *rest in places:
            self.packet(self.on(hop, path, t), psn, *rest)
        return self

    def reply(self, at: tuple[float, float], word: str, kind: str = "good") -> "Page":
        x, y = at
        self.below(y)
        w = 9 + 7 * len(word)
        self.marks.append(
            f'<rect class="reply {kind}" x="{x - w / 2:.1f}" y="{y - 9:.1f}" width="{w}" height="18" rx="9"/>'
            f'<text class="word {kind}" x="{x:.1f}" y="{y + 4:.1f}">{html.escape(word)}</text>'
        )
        return self

    def cross(self, at: tuple[float, float], size: int = 9) -> "Page":
        x, y = at
        self.marks.append(
            f'<path class="cross" d="M{x - size:.0f} {y - size:.0f}l{2 * size} {2 * size}m0 {-2 * size}l{-2 * size} {2 * size}"/>'
        )
        return self

    def queue(self, path: int, n: int, flow: int = 9, hop: int = 1) -> "Page":
        """Draws a queue of n packets at the port to a path."""
        for i in range(n):
            x, y = self.on(hop, path, -0.28 + 0.085 * i)
            self.marks.append(f'<rect class="bar f{flow}" x="{x - 2:.1f}" y="{y - 8:.1f}" width="4" height="16" rx="1"/>')
        return self

    def note(self, x: float, y: float, text: str, kind: str = "") -> "Page":
        self.below(y)
        self.marks.append(f'<text class="note {kind}" x="{x:.0f}" y="{y:.0f}">{html.escape(text)}</text>')
        return self

    def below(self, y: float) -> None:
        if y > HEIGHT - 12:
            self.height = TALL

    def arrow(self, x1: float, y1: float, x2: float, y2: float, bend: float = 0, kind: str = "") -> "Page":
        mx, my = (x1 + x2) / 2, (y1 + y2) / 2 + bend
        self.marks.append(
            f'<path class="arrow {kind}" marker-end="url(#tip)" d="M{x1:.0f} {y1:.0f}Q{mx:.0f} {my:.0f} {x2:.0f} {y2:.0f}"/>'
        )
        return self

    def svg(self, title: str) -> str:
        tip = (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>'
        )
        body = "".join(self.wires + self.nodes + self.marks)
        name = html.escape(title, quote=True)
        return f'<svg viewBox="0 0 {WIDTH} {self.height}" role="img" aria-label="{name}">{tip}{body}</svg>'


on = Page.on


def ecmp(p: Page) -> str:
    p.fabric(acts="S")
    p.packets((1, 1, 0.1, 3), (1, 1, 0.85, 2), (2, 1, 0.5, 1), (1, 1, 0.48, 8, 1), (2, 1, 0.05, 7, 1), (1, 3, 0.5, 5, 2), (2, 3, 0.4, 4, 2))
    p.note(104, 88, "hash(5-tuple)").note(280, 244, "two flows share a path, two paths are idle")
    return "Each flow keeps the path that its hash selects. Two large flows on one path get half the rate each, although other paths are idle."


def rps(p: Page) -> str:
    p.fabric(acts="S").queue(2, 3)
    p.packets((1, 0, 0.5, 4), (1, 2, 0.5, 2), (1, 3, 0.35, 5), (2, 1, 0.7, 3), (2, 0, 0.1, 1), (3, 0, 0.5, 0))
    p.note(104, 88, "draws a port")
    return "Each packet takes a random path. The load is even, but packet 3 overtakes packet 2, and the receiver mistakes that for a loss."


def ar(p: Page) -> str:
    p.fabric(acts="S").queue(0, 4).queue(1, 2).queue(3, 3)
    p.packets((1, 2, 0.3, 4), (1, 2, 0.9, 3), (2, 1, 0.7, 2), (2, 3, 0.1, 1))
    p.note(104, 88, "shortest queue")
    return "Each packet joins the shortest queue of its switch. Queues in later switches do not count."


def ars(p: Page) -> str:
    p.fabric(acts="S").queue(0, 4).queue(1, 1).queue(2, 1).queue(3, 3)
    p.packets((1, 1, 0.8, 4), (1, 1, 0.5, 5), (1, 1, 0.2, 6), (2, 1, 0.7, 3))
    p.note(104, 88, "bands 0, 6,").note(104, 154, "6 and 2")
    return "The switch grades its ports every few microseconds. After a pause a flow set draws a port of the best band; until the next sample, others follow it."


def drill(p: Page) -> str:
    p.fabric(acts="S").queue(0, 4).queue(1, 2).queue(2, 0).queue(3, 3)
    p.packets((1, 1, 0.7, 5), (2, 3, 0.4, 4))
    p.arrow(158, 74, 196, 66, -12).arrow(158, 162, 196, 170, 12)
    p.note(104, 88, "samples 2,").note(104, 154, "remembers 1")
    return "The switch compares two sampled queues and one remembered queue for each packet, and takes the shortest of the three."


def flowlet(p: Page) -> str:
    flowlet_like(p, "S")
    p.note(104, 70, "after a pause:").note(104, 88, "new draw")
    return "After a pause in a flow, the switch draws a new path. RDMA NICs pace packets evenly, so pauses are rare."


def flowlet_nic(p: Page) -> str:
    flowlet_like(p, "s")
    p.note(18, 90, "new source port", "left")
    return "The sending NIC acts: after a pause in a flow, it draws another UDP source port, and so another hash."


def flowlet_like(p: Page, who: str) -> None:
    p.fabric(acts=who)
    p.packets((2, 1, 0.7, 1), (2, 1, 0.15, 2), (1, 1, 0.75, 3), (1, 3, 0.45, 4), (1, 3, 0.0, 5))


def flowcell(p: Page) -> str:
    p.fabric(acts="s")
    p.packets((2, 0, 0.6, 1), (2, 0, 0.05, 2), (1, 2, 0.9, 3), (1, 2, 0.3, 4), (0, 0, 0.5, 5))
    p.note(18, 90, "64 KB per port", "left")
    return "Every 64 KB of a flow use another source port. Packets stay in order inside a cell, but cells may overtake each other."


def rps_nic(p: Page) -> str:
    p.fabric(acts="s")
    p.packets((1, 0, 0.5, 4), (1, 2, 0.4, 3), (2, 1, 0.7, 2), (2, 3, 0.3, 1), (0, 0, 0.5, 5))
    p.note(18, 90, "port: random", "left")
    return "Each packet carries a random UDP source port, so ordinary ECMP switches spray the packets."


def plb(p: Page) -> str:
    p.fabric(acts="s").queue(0, 4)
    p.packets((2, 0, 0.6, 1), (1, 0, 0.9, 2), (1, 0, 0.35, 3), (1, 2, 0.2, 4))
    p.arrow(496, 140, 64, 140, 212).reply((280, 246), "ACKs: half of them marked")
    p.note(18, 90, "round 12: moves", "left")
    return "The sending NIC counts marks, round trip by round trip. After twelve congested ones in a row, or after three when nothing is in flight, the flow draws another source port."


def reps(p: Page) -> str:
    p.fabric(acts="s").queue(3, 4)
    p.packets((1, 1, 0.4, 6), (2, 0, 0.3, 5), (1, 3, 0.7, 4))
    p.arrow(496, 140, 64, 140, 212).reply((280, 246), "ACK: port 7 was clean")
    p.note(18, 90, "reuses ports", "left")
    return "An ACK without a congestion mark returns its source port, and the next packet uses this port again. The port of a marked ACK is forgotten."


def conga(p: Page) -> str:
    p.fabric(acts="SR").queue(0, 3, hop=2)
    p.packets((1, 2, 0.4, 5), (1, 2, 0.9, 4), (2, 0, 0.7, 3))
    p.note(104, 70, "load by path:").note(104, 88, "6, 3, 0, 2").arrow(404, 140, 156, 140, 206, "dim").reply((280, 243), "path 0: 6")
    return "Leaves measure every path and exchange the results. A flowlet takes the path whose most loaded link has the lowest load."


def conweave(p: Page) -> str:
    p.fabric(acts="SR").queue(0, 3)
    p.packets((1, 0, 0.85, 3), (1, 2, 0.5, 5), (2, 2, 0.5, 4))
    p.marks.append('<rect class="shelf" x="384" y="140" width="60" height="26" rx="4"/>')
    p.packet((398, 153), 4).packet((424, 153), 5)
    p.note(414, 184, "waits for 3").note(104, 70, "reply late:").note(104, 88, "moves")
    return "A flow leaves a path when the reply to a probe is late. The receiver's ToR holds packets of the new path until the old path is empty, so the NIC receives packets in order."


def themis(p: Page) -> str:
    p.fabric(acts="SR").queue(0, 3)
    p.packets((1, 0, 0.7, 4), (1, 3, 0.3, 7), (2, 2, 0.2, 6), (2, 1, 0.8, 5))
    p.note(104, 88, "PSN mod 4").reply((466, 148), "NACK 4", "bad").cross((426, 148), 8)
    p.note(414, 184, "4 is only late:").note(414, 200, "the NACK ends here")
    return "PSN n takes path n mod 4, so the last ToR knows which packets share a path. It blocks the NACK for packet 4, because no later packet of the same path has passed."


def dlbf(p: Page) -> str:
    p.fabric(acts="sr").queue(1, 4)
    p.packets((1, 1, 0.7, 4), (1, 2, 0.3, 4, 0, "copy"), (2, 2, 0.3, 5), (1, 2, 0.8, 6))
    p.note(18, 90, "moves, and", "left").note(18, 158, "sends again", "left").note(542, 158, "keeps first", "right")
    return "A flow leaves a path with congestion marks. The sender resends the packets in flight on the new path, so the receiver need not wait for the old path."


def mp_rdma(p: Page) -> str:
    p.fabric(acts="sr")
    p.packets((1, 0, 0.5, 7), (1, 1, 0.3, 8), (2, 2, 0.4, 6), (2, 3, 0.7, 5), (1, 3, 0.2, 9))
    p.arrow(496, 140, 64, 140, 212).reply((280, 246), "ACK 5, path 3: no mark")
    p.note(18, 90, "one window", "left").note(542, 90, "bitmap", "right")
    return "Each ACK carries the path and the mark of its packet, and releases the next packet onto the same path. One window serves all paths."


def ethereal(p: Page) -> str:
    p.fabric(acts="sS")
    p.packets((1, 0, 0.5, 1), (1, 1, 0.5, 1), (1, 2, 0.5, 1), (1, 3, 0.5, 1))
    p.note(18, 90, "four subflows,", "left").note(18, 158, "one per path", "left")
    return "A message is split so that every uplink of its sender carries the same bytes. Each subflow is a queue pair that keeps its path until a timeout."


def flowcut(p: Page) -> str:
    p.fabric(acts="S").queue(0, 4)
    p.packets((2, 0, 0.6, 2), (1, 0, 0.8, 3), (0, 0, 0.5, 4))
    p.note(104, 70, "stop, drain,").note(104, 88, "then move").note(104, 154, "next: path 3")
    return "A flow moves only when none of its packets is in flight. If its round trip grows, it stops until it has drained. Its packets stay in order."


def ways(p: Page, minimal: bool, detour: bool) -> None:
    """Draws a Dragonfly of five groups."""
    centre, size = (280, 120), 84
    spots = [(centre[0] + 2.1 * size * cos(a), centre[1] + 1.0 * size * sin(a)) for a in (pi + 2 * pi * i / 5 for i in range(5))]
    for i, a in enumerate(spots):
        for b in spots[i + 1 :]:
            p.wire(*a, *b)
    if minimal:
        p.wire(*spots[0], *spots[2], "way")
    if detour:
        p.wire(*spots[0], *spots[4], "way by")
        p.wire(*spots[4], *spots[2], "way by")
    for i, (x, y) in enumerate(spots):
        name = {0: "from", 2: "to", 4: "via"}.get(i, "group") if detour or i != 4 else "group"
        p.node(x, y, name, "node acts" if i == 0 else "node", 62, 34)
    p.spots = spots


def between(a, b, t):
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t


def minimal(p: Page) -> str:
    ways(p, True, False)
    s = p.spots
    for i, t in enumerate((0.7, 0.5, 0.3)):
        p.packet(between(s[0], s[2], t), i + 1)
    return "Packets go directly from group to group. If one group sends to one other group, all packets share the link between the two."


def valiant(p: Page) -> str:
    ways(p, False, True)
    s = p.spots
    p.packet(between(s[0], s[4], 0.6), 2).packet(between(s[4], s[2], 0.5), 1)
    return "Packets go to a random group first. They use twice as many links, and the load is even for every traffic pattern."


def ugal_l(p: Page) -> str:
    ways(p, True, True)
    s = p.spots
    p.packet(between(s[0], s[2], 0.62), 1).packet(between(s[0], s[4], 0.6), 3).packet(between(s[4], s[2], 0.5), 2)
    p.note(s[0][0], s[0][1] - 26, "own queues").note(280, 246, "direct queue > 2 × detour's + 3200 B: take the detour")
    return "Each packet goes directly or over a random group, depending on the queues of its first switch."


def ugal_g(p: Page) -> str:
    ways(p, True, True)
    s = p.spots
    p.packet(between(s[0], s[2], 0.62), 1).packet(between(s[0], s[4], 0.6), 3).packet(between(s[4], s[2], 0.5), 2)
    p.note(280, 246, "all queues on both paths, as they were a short time ago")
    return "Each packet goes directly or over a random group, depending on all queues on both paths, as they were a short time ago. UGAL-G is a yardstick, not a product."


def centres(p: Page) -> None:
    for x, name in ((110, "datacentre A"), (450, "datacentre B")):
        p.wires.append(f'<rect class="site" x="{x - 96}" y="34" width="192" height="160" rx="10"/>')
        p.note(x, 26, name)
    p.wire(190, 114, 370, 114, "wire long")
    p.wire(54, 114, 170, 114)
    p.wire(390, 114, 506, 114)
    p.node(52, 114, "NIC")
    p.node(508, 114, "NIC")


def acting_edges(p: Page) -> None:
    """Two datacentres whose edge switches both act; the near one sends a CNP to a local sender."""
    centres(p)
    p.node(176, 114, "edge", "node acts")
    p.node(384, 114, "edge", "node acts")
    p.packet((250, 114), 2).packet((310, 114), 1)
    p.reply((114, 146), "CNP").arrow(168, 136, 70, 136, 32)


def long_haul(p: Page) -> str:
    acting_edges(p)
    p.marks.append('<rect class="shelf" x="366" y="140" width="56" height="26" rx="4"/>')
    p.packet((381, 153), 7, 1).packet((406, 153), 6, 1)
    p.note(280, 90, "100 km, 1 ms back").note(150, 184, "notifies near").note(410, 184, "holds far data")
    return "The edge switch answers marked data of local senders at once, where the CNP of the far receiver would take a millisecond. It also holds back data from far senders when a local receiver is congested."


def direct_cnp(p: Page) -> str:
    p.fabric(acts="Sm").queue(1, 4, hop=2)
    p.packets((2, 1, 0.8, 1), (1, 1, 0.5, 2))
    p.arrow(258, 102, 70, 142, 46).reply((170, 168), "CNP")
    return "The switch with the long queue sends a CNP directly to the sender, not through the receiver."


def annulus(p: Page) -> str:
    p.fabric(acts="Ss").queue(1, 4, hop=1)
    p.packets((2, 1, 0.8, 1), (1, 1, 0.5, 2))
    p.arrow(136, 100, 60, 100, 40).reply((100, 70), "Fb")
    p.note(44, 158, "two rates")
    return "The sender's ToR samples its queues and tells the sender how long they are. The sender keeps a rate for that, and one for the CNPs of receivers; the smaller one counts."


def bicc(p: Page) -> str:
    acting_edges(p)
    p.marks.append('<rect class="shelf" x="366" y="140" width="56" height="26" rx="4"/>')
    p.packet((381, 153), 7, 1).packet((406, 153), 6, 1)
    p.reply((452, 90), "ACK")
    p.note(280, 90, "100 km, 1 ms back").note(150, 184, "notifies near").note(410, 184, "waits for credit")
    return "The edge switch answers marked data of local senders at once. Data from far senders enters the datacentre when its receiver has credit, which ACKs return."


def fair_rate(p: Page) -> str:
    acting_edges(p)
    p.note(280, 90, "100 km, 1 ms back").note(150, 184, "25 Gb/s for you").note(410, 184, "counts bytes and flows")
    return "The edge switch counts what a receiver drains and how many flows share it. Its CNPs tell senders their share, and they send no faster."


# Every function that draws a page and returns its caption, by the scheme's name.
DRAWINGS = {
    name.replace("_", "-"): f
    for name, f in list(globals().items())
    if getattr(f, "__annotations__", None) == {"p": Page, "return": str}
}


def draw(name: str) -> str:
    """Figure with a drawing and its caption."""
    if name not in DRAWINGS:
        raise SystemExit(f"there is no drawing {name!r}; known drawings: {', '.join(DRAWINGS)}")
    page = Page()
    caption = DRAWINGS[name](page)
    svg = page.svg(f"{name}: {caption}").replace("#tip", f"#tip-{name}").replace('"tip"', f'"tip-{name}"', 1)
    return f'<figure class="drawing">{svg}<figcaption>{html.escape(caption)}</figcaption></figure>'
