// Builds the page section by section, so that the first sections appear at once.

const page = document.getElementById("page");
const themeButton = document.getElementById("theme");
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function setTheme(theme) {
  root.dataset.theme = theme;
  themeButton.textContent = theme === "dark" ? "Light" : "Dark";
  for (const swatch of document.querySelectorAll("[data-scheme]")) swatch.style.background = colour(swatch.dataset.scheme);
  for (const made of charts) if (made.drawn) made.redraw();
}
setTheme(prefersDark.matches ? "dark" : "light");
themeButton.addEventListener("click", () => setTheme(dark() ? "light" : "dark"));
prefersDark.addEventListener("change", (event) => setTheme(event.matches ? "dark" : "light"));

document.title = `${data.title}: ropewalk`;
headline(page);
document.getElementById("contents").append(h("a", { href: "#page" }, "Answer"));
const wanted = sections.filter((section) => section.when());
for (const section of wanted) {
  document.getElementById("contents").append(h("a", { href: `#${section.id}` }, section.short));
  const box = h("section", { id: section.id, "aria-labelledby": `${section.id}-title` }, h("h2", { id: `${section.id}-title` }, section.title));
  page.append(box);
  section.fill(box);
}
page.append(h("footer", {}, `Made by ropewalk ${data.ropewalk}. This file is self-contained and works offline. Charts by plotly.js (MIT).`));

/** Parsing plotly's megabytes takes a second, so they stay text until the answer is on the screen. */
function readPlotly() {
  if (typeof Plotly === "undefined") document.head.append(h("script", {}, document.getElementById("plotly").textContent));
}
const PAINT_MS = 30; // time for the first frame: two frames at 60 per second (our choice)

/** Charts are drawn one by one between frames. For printing, all are drawn at once in light colours. */
const waiting = [...charts];
function next() {
  const made = waiting.shift();
  if (!made) { root.dataset.ready = String(Math.round(performance.now())); return; }
  if (!made.drawn) made.redraw();
  setTimeout(next, 0);
}
window.addEventListener("load", () => setTimeout(() => { readPlotly(); setTimeout(next, 0); }, PAINT_MS));
// Width of A4 between margins, because charts do not adapt to paper by themselves.
const PAPER = "680px";
let before = null;
window.addEventListener("beforeprint", () => {
  before = root.dataset.theme;
  page.style.width = PAPER;
  root.dataset.print = "";
  readPlotly();
  setTheme("light");
  for (const made of charts) made.redraw();
  // A table that is wider than the paper is scaled down, because cut numbers are worse than small ones.
  for (const wide of document.querySelectorAll(".scroll > table")) wide.style.zoom = Math.min(1, wide.parentElement.clientWidth / wide.scrollWidth);
});
window.addEventListener("afterprint", () => {
  for (const wide of document.querySelectorAll(".scroll > table")) wide.style.zoom = "";
  page.style.width = "";
  delete root.dataset.print;
  if (before) setTheme(before);
});
