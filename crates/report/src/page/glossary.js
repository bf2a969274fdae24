// Terms: words of the field, and the quantities of the tables with their meanings from the program's list of metrics.

const TERMS = [
  ["flow", "One message of a queue pair."],
  ["PSN, ePSN", "Packet sequence number, and the number that the receiver expects next."],
  ["NACK", "A receiver's request for a missing PSN. Commodity NICs send it at the first packet ahead of ePSN, whether the expected packet is lost or only late."],
  ["CNP", "Congestion notification packet: it asks the sender to slow down."],
  ["PFC", "Priority flow control: a pause frame stops a link before a buffer overflows."],
  ["P99", "99th percentile: 99 % of the values do not exceed it (nearest rank)."],
  ["digest", "One number for everything that happened in a run; equal digests mean equal runs."],
];

sections.push({
  id: "glossary", title: "Words", short: "Words", when: () => true,
  fill(box) {
    const all = [...TERMS, ...data.terms.map(([term, meaning]) => [term, `${meaning}.`])];
    box.append(h("dl", { class: "glossary" }, all.map(([term, text]) => [h("dt", {}, term), h("dd", {}, text)])));
  },
});
