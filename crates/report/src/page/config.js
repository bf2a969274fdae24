// The configuration, the differences between runs, and the commands that repeat them.

/** TOML with classes for comments and headers. */
function toml(text) {
  return text.split("\n").flatMap((line) => {
    const kind = /^\s*#/.test(line) ? "note" : /^\s*\[/.test(line) ? "head" : null;
    return [kind ? h("span", { class: kind }, line) : line, "\n"];
  });
}

sections.push({
  id: "config", title: "Settings, and how to run it again", short: "Settings",
  when: () => !data.sweep,
  fill(box) {
    if (data.parts.length) {
      box.append(h("p", { class: "lead" }, "The same scenario and seed give the same digest on any machine and on any number of threads."),
        table([{ name: "run", text: true }, { name: "seed", text: true }, { name: "digest", text: true }, { name: "configuration", text: true }, { name: "ropewalk", text: true }],
          data.parts.map((part) => [part.name, part.seeds.join(", "), h("code", {}, part.digests.join(" ")), h("code", {}, part.config_hash), part.version]), { label: "Identification of the runs" }));
      if (data.left_out) box.append(h("p", { class: "said" }, `To keep the page small, only the first ${data.parts.length - data.left_out} of these runs have details on time, packets and fabric.`));
      const commands = data.experiments.length ? [] : data.again;
      if (commands.length) {
        box.append(h("h3", {}, "Run it again"), ...(commands.length === 1 ? [h("pre", { class: "command", tabindex: "0" }, commands[0][1])]
          : commands.map(([name, command]) => [h("p", { class: "lead" }, name), h("pre", { class: "command", tabindex: "0" }, command)]).flat()));
      }
    }
    for (const experiment of data.experiments) {
      box.append(h("h3", {}, "Run it again"), h("pre", { class: "command", tabindex: "0" }, `ropewalk reproduce ${experiment.name}${experiment.quick ? " --quick" : ""} --report`));
      if (experiment.cases.length) {
        box.append(h("details", {}, h("summary", {}, `Commands of its ${count(experiment.cases.length)} cases`),
          experiment.cases.map(([label, command]) => [h("p", { class: "lead" }, label), h("pre", { class: "command", tabindex: "0" }, command)])));
      }
    }
    const { differences, more, annotated } = data.config;
    if (differences.length) {
      box.append(h("h3", {}, "Differences"),
        table([{ name: "key", text: true }, ...data.parts.map((part) => ({ name: part.name, text: true }))],
          differences.map(([key, values]) => [h("code", {}, key), ...values.map((value) => value ?? "–")]), { caption: "Keys with different values; – means that a run does not have the key", tall: differences.length > 16 }));
      if (more) box.append(h("p", { class: "lead" }, `${more} more keys differ.`));
    }
    if (annotated) {
      box.append(h("details", { id: "configuration" }, h("summary", {}, `The full configuration${data.parts.length > 1 ? ` of ${data.parts[0].name}` : ""}, with the meaning, default and source of every key`),
        h("pre", { class: "config", tabindex: "0" }, toml(annotated))));
    }
  },
});
