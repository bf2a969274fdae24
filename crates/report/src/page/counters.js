// Counters of the scheme and of the NICs.

sections.push({
  id: "counters", title: "NACKs, CNPs and other counts", short: "Counts",
  when: () => data.parts.some((part) => part.counters.scheme.length || part.counters.control.some(([, n]) => n)),
  fill(box) {
    const rows = (pick) => {
      const names = [...new Set(data.parts.flatMap((part) => pick(part).map(([name]) => name)))];
      const of = (name) => data.parts.map((part) => { const found = pick(part).find(([n]) => n === name); return found ? found[1] : null; });
      return names.map((name) => [name, of(name)]).filter(([, values]) => values.some((v) => v))
        .map(([name, values]) => [name.replaceAll("_", " "), ...values.map((v) => ({ value: v, show: count(v) }))]);
    };
    const columns = () => [{ name: "", text: true }, ...data.parts.map((part) => ({ name: part.name }))];
    const add = (title, pick) => { const all = rows(pick); if (all.length) box.append(h("h3", {}, title), table(columns(), all, { label: title })); };
    box.append(h("p", { class: "lead" }, "Control packets from receivers and switches, and counters of the scheme. Rows without counts are left out."));
    const runs = data.parts.map((part, i) => i).filter((i) => data.parts[i].counters.over_time?.some((t) => t.values.some((v) => v)));
    if (runs.length) {
      let run = runs[0];
      // Counters that are always equal share one line with all their names; separate lines would hide each other.
      const lines = () => {
        const alike = new Map();
        for (const t of data.parts[run].counters.over_time.filter((track) => track.values.some((v) => v))) {
          const key = JSON.stringify([t.at_us, t.values]);
          alike.set(key, { ...t, names: [...(alike.get(key)?.names || []), t.name.replaceAll("_", " ")] });
        }
        return [...alike.values()];
      };
      const draw = () => {
        const traces = lines().map((t, i) => ({ ...lined(nth(i), { width: 2, shape: "hv" }), name: t.names.join(" = "), x: t.at_us, y: t.values }));
        return { traces, layout: faulty({ xaxis: { title: "time, µs" }, yaxis: { title: "cumulative count", rangemode: "tozero" }, showlegend: true }, traces, [run]) };
      };
      const made = chart("Counters over time", () => `${firstSeed(data.parts[run])}Cumulative counts since the start of the run.${faultText([run])}`, draw, 380);
      const list = dataTable(() => [{ name: "counter", text: true }, { name: "until", unit: "µs" }, { name: "count" }],
        () => data.parts[run].counters.over_time.flatMap((t) => t.values.map((v, i) => [t.name, t.at_us[i], { value: v, show: count(v) }])));
      const choice = runMenu(runs, (value) => { run = Number(value); made.redraw(); list.refresh(); });
      box.append(...[choice ? h("div", { class: "controls" }, choice) : null, made.element, list].filter(Boolean));
    }
    const seeds = [...new Set(data.parts.map(firstSeed))].filter(Boolean);
    if (seeds.length) box.append(h("p", { class: "lead" }, seeds.length === 1 && data.parts.every(firstSeed) ? seeds[0]
      : data.parts.filter(firstSeed).map((part) => `${part.name}: ${firstSeed(part)}`).join("")));
    add("Counters of the scheme", (part) => part.counters.scheme);
    add("Control packets and timeouts", (part) => part.counters.control);
  },
});
