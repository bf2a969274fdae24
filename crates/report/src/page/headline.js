// The question, the answer, and the table.

/** Confidence interval and range of a mean over seeds, as in "± 3.1 (7.0–12.5)"; null if the values do not differ. */
function spread(row, i, unit) {
  const range = row.ranges && row.ranges[i];
  if (!range || range[0] === range[1]) return null;
  const margin = row.margins && row.margins[i];
  const shown = range.map(measured(unit)).join("–");
  return margin === null || margin === undefined ? shown : `± ${number(margin)} (${shown})`;
}

/** The table of runs, one row each, with the best value of each column marked. */
function compared(numbers) {
  const best = numbers.columns.map((column, i) => {
    const values = numbers.rows.filter((row) => row.complete).map((row) => row.cells[i]).filter((x) => x !== null);
    if (!column.better || values.length < 2 || new Set(values).size < 2) return null;
    return column.better > 0 ? Math.max(...values) : Math.min(...values);
  });
  const columns = [{ name: "", text: true }, ...numbers.columns];
  const rows = numbers.rows.map((row) => [
    [h("span", { class: "swatch", style: `background:${colour(row.scheme)}`, "data-scheme": row.scheme }), row.name,
      row.complete ? "" : " (not complete)"],
    ...row.cells.map((value, i) => ({
      value, mark: row.complete && value !== null && value === best[i],
      range: spread(row, i, numbers.columns[i].unit),
    })),
  ]);
  const several = numbers.rows.some((row) => row.runs > 1);
  const ooo = numbers.columns.findIndex((column) => column.name === "out of order");
  const harmless = ooo >= 0 && numbers.rows.some((row) => row.cells[ooo] > 0)
    ? " Packets out of order cost nothing by themselves: NACKs that reach senders, retransmissions and cut rates do." : "";
  const caption = `${best.some((x) => x !== null) ? "Green marks the best value of each column." : ""}${several ? " Numbers are means over seeds; below them stand half of the 95 % confidence interval of the mean, and the lowest and the highest value." : ""}${harmless}`;
  return h("div", { id: "table" }, table(columns, rows, { caption }));
}

/** The numbers of one run. */
function tiles(numbers) {
  return h("dl", { class: "tiles", id: "table" }, numbers.columns.map((column, i) =>
    h("div", { title: column.about }, h("dt", {}, column.name),
      h("dd", { "data-name": column.name, "data-value": numbers.rows[0].cells[i] ?? "" },
        measured(column.unit)(numbers.rows[0].cells[i]), " ", h("small", {}, column.unit)))));
}

/** What decides a ranking: sentences, causes, and the variations with their times. */
function decided(verdict) {
  const arrows = (text) => text.replaceAll(" -> ", " → ").replace(/(\d) us\b/g, "$1 µs");
  const sentences = verdict.answer.map((text) => h("p", {}, together(arrows(text))));
  const survival = verdict.survives;
  const causes = verdict.time.flatMap((blame) => blame.causes.filter((cause) => cause.share >= 0.05).map((cause) =>
    [blame.scheme, { value: cause.share * 100 }, arrows(cause.what)]));
  const parts = [table([{ name: "under", text: true }, { name: "share", unit: "%" }, { name: "of the time goes to", text: true }], causes, {})];
  if (survival && survival.tried.length) {
    const columns = [{ name: "variation", text: true }, ...survival.contenders.map((name) => ({ name, unit: "µs" })), { name: "holds", text: true }];
    const rows = [["as compared", ...survival.us.map((value) => ({ value })), ""],
      ...survival.tried.map((tried) => [tried.name, ...tried.us.map((value) => ({ value })), tried.holds ? "yes" : "no"])];
    parts.push(table(columns, rows, { caption: "The contenders, run again with other values of the settings that the answer rests on." }));
  }
  return h("div", { class: "decides" }, sentences, h("details", {}, h("summary", {}, "Causes and variations"), parts));
}

/** Keeps numbers and units on one line. */
const together = (text) => text.replace(/(\d) (%|µs|ms|x\b|times)/g, "$1\u00a0$2");

function headline(page) {
  const kinds = { sweep: "A sweep", run: "A run", compare: "A comparison", reproduce: "A paper's experiment" };
  page.append(
    h("h1", {}, data.title),
    h("p", { class: "kind" }, `${kinds[data.kind]}, by ropewalk ${data.ropewalk}`),
    h("dl", { class: "asked" }, data.asked.map((line) => [h("dt", {}, line.label), h("dd", {}, line.text)])),
    h("div", { class: `answer${(data.answer[0] || "").length > 160 ? " long" : ""}` },
      data.answer.map((text) => h("p", { class: text.includes("NOT complete") ? "fault" : null }, together(text)))));
  for (const verdict of [data.decides ?? []].flat()) page.append(decided(verdict));
  if (data.table) page.append(data.table.rows.length > 1 ? compared(data.table) : tiles(data.table));
}
