// Terms, shortly.

const TERMS = [
  ["flow", "One message of a queue pair."],
  ["FCT", "Flow completion time: from a flow's start to the ACK of its last byte at the sender."],
  ["slowdown", "FCT divided by the FCT of the flow alone on the fabric, worked out exactly. 1 is ideal."],
  ["slowest group", "From a job's start until the last rank of its slowest group (communicator) has received its last byte: what a training step waits for."],
  ["goodput", "Payload bits divided by FCT; headers and retransmissions do not count."],
  ["PSN, ePSN", "Packet sequence number, and the one that the receiver expects next."],
  ["out of order", "Arrived with a PSN above ePSN: something was overtaken, or lost."],
  ["NACK", "The receiver's word that a PSN is missing. Commodity NICs send it at the first packet ahead of ePSN, whether it is lost or only late."],
  ["CNP", "Congestion notification: the sender shall slow down."],
  ["spurious", "A retransmission that nobody needed, as the packet had not been lost."],
  ["blocked", "NACKs that switches stopped, as they proved no loss."],
  ["pause", "A PFC frame that stops a link, so that a buffer does not overflow."],
  ["P99", "99 of 100 are no larger (nearest rank)."],
  ["digest", "One number for everything that happened in a run; equal digests mean equal runs."],
];

sections.push({
  id: "glossary", title: "Terms", short: "Terms", when: () => true,
  fill(box) {
    box.append(h("dl", { class: "glossary" }, TERMS.map(([term, text]) => [h("dt", {}, term), h("dd", {}, text)])));
  },
});
