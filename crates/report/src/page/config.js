// The configuration, in what runs differ, and how to run it again.

/** TOML with its comments set back. */
function toml(text) {
  return text.split("\n").flatMap((line) => {
    const kind = /^\s*#/.test(line) ? "note" : /^\s*\[/.test(line) ? "head" : null;
    return [kind ? h("span", { class: kind }, line) : line, "\n"];
  });
}

sections.push({
  id: "config", title: "Configuration, and how to run it again", short: "Again",
  when: () => !data.sweep,
  fill(box) {
    if (data.parts.length) {
      box.append(h("p", { class: "lead" }, "The same scenario and seed give the same digest on any machine and on any number of threads."),
        table([{ name: "run", text: true }, { name: "seed", text: true }, { name: "digest", text: true }, { name: "configuration", text: true }, { name: "ropewalk", text: true }],
          data.parts.map((part) => [part.name, part.seeds.join(", "), h("code", {}, part.digests.join(" ")), h("code", {}, part.config_hash), part.version]), { label: "What names the runs" }));
      if (data.left_out) box.append(h("p", { class: "said" }, `Time, packets and fabric are shown for the first ${data.parts.length - data.left_out} of these runs, so that the page stays small.`));
      const commands = data.experiments.length ? [] : data.again;
      if (commands.length) {
        box.append(h("h3", {}, "Run it again"), ...(commands.length === 1 ? [h("pre", { class: "command", tabindex: "0" }, commands[0][1])]
          : commands.map(([name, command]) => [h("p", { class: "lead" }, name), h("pre", { class: "command", tabindex: "0" }, command)]).flat()));
      }
    }
    for (const experiment of data.experiments) {
      box.append(h("h3", {}, "Run it again"), h("pre", { class: "command", tabindex: "0" }, `ropewalk reproduce ${experiment.name}${experiment.quick ? " --quick" : ""} --report`));
      if (experiment.cases.length) {
        box.append(h("details", {}, h("summary", {}, `Its ${count(experiment.cases.length)} cases, each alone`),
          experiment.cases.map(([label, command]) => [h("p", { class: "lead" }, label), h("pre", { class: "command", tabindex: "0" }, command)])));
      }
    }
    const { differences, more, annotated } = data.config;
    if (differences.length) {
      box.append(h("h3", {}, "In what they differ"),
        table([{ name: "key", text: true }, ...data.parts.map((part) => ({ name: part.name, text: true }))],
          differences.map(([key, values]) => [h("code", {}, key), ...values.map((value) => value ?? "–")]), { caption: "Keys that are not the same everywhere; – where a run has none", tall: differences.length > 16 }));
      if (more) box.append(h("p", { class: "lead" }, `${more} more keys differ.`));
    }
    if (annotated) {
      box.append(h("details", { id: "configuration" }, h("summary", {}, `The full configuration${data.parts.length > 1 ? ` of ${data.parts[0].name}` : ""}, with the meaning, default and source of every key`),
        h("pre", { class: "config", tabindex: "0" }, toml(annotated))));
    }
  },
});
