// Charts: packets by PSN, NACKs, rates, queues. Each shows the run up to the present time.
"use strict";

/** A round number of at least `value`. */
function round(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value * 0.999);
}

function short(value) {
  if (Math.abs(value) >= 1e6) return `${+(value / 1e6).toPrecision(3)}M`;
  if (Math.abs(value) >= 1e4) return `${+(value / 1e3).toPrecision(3)}k`;
  return `${+value.toPrecision(3)}`;
}

/** Axes of a chart; returns the functions from values to pixels. */
function axes(canvas, look, { x: [x0, x1], y: [y0, y1], unit }) {
  const { context: c, width, height } = sharp(canvas);
  const box = { left: 46, right: width - 10, top: 8, bottom: height - 20 };
  const x = (value) => box.left + ((value - x0) / (x1 - x0 || 1)) * (box.right - box.left);
  const y = (value) => box.bottom - ((value - y0) / (y1 - y0 || 1)) * (box.bottom - box.top);
  c.font = "11px system-ui, sans-serif";
  c.lineWidth = 1;
  c.textBaseline = "middle";
  const step = round((y1 - y0) / 4);
  for (let value = Math.ceil(y0 / step) * step; value <= y1 + step * 1e-6; value += step) {
    c.strokeStyle = look.line;
    c.globalAlpha = 0.5;
    c.beginPath();
    c.moveTo(box.left, y(value));
    c.lineTo(box.right, y(value));
    c.stroke();
    c.globalAlpha = 1;
    c.fillStyle = look.soft;
    c.textAlign = "right";
    c.fillText(short(value), box.left - 5, y(value));
  }
  const across = round((x1 - x0) / Math.max(2, Math.floor(width / 110)));
  for (let value = Math.ceil(x0 / across) * across; value <= x1 + across * 1e-6; value += across) {
    const last = x(value) > box.right - 24;
    c.textAlign = last ? "right" : "center";
    c.fillText(`${short(value)}${last || value + across > x1 ? ` ${unit}` : ""}`, last ? box.right : x(value), height - 8);
  }
  c.save();
  c.beginPath();
  c.rect(box.left, 0, box.right - box.left + 1, box.bottom + 1);
  c.clip();
  return { c, x, y, box };
}

/** The end of a time axis: the run's, or a nearer one while the run is young. */
function horizon(now, end) {
  let limit = 100;
  while (limit < now) limit *= 2;
  return Math.min(limit, end);
}

/** Lines over time up to `now`; `rows` are `{ values, colour, thick, alpha }` with one value per bin of `step` us. */
function lines(canvas, { end, now, rows, most, step }) {
  const look = colours();
  const { c, x, y } = axes(canvas, look, { x: [0, horizon(now, end)], y: [0, round(most)], unit: "µs" });
  for (const { values, colour, thick, alpha } of rows) {
    c.strokeStyle = colour;
    c.lineWidth = thick ?? 1.5;
    c.globalAlpha = alpha ?? 1;
    c.lineJoin = "round";
    c.beginPath();
    for (let i = 0; i < values.length && i * step <= now; i++) {
      const at = [x(Math.min(now, (i + 0.5) * step)), y(values[i])];
      if (i) c.lineTo(...at);
      else c.moveTo(...at);
    }
    c.stroke();
  }
  c.globalAlpha = 1;
  c.strokeStyle = look.ink;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(x(now), 0);
  c.lineTo(x(now), canvas.clientHeight);
  c.stroke();
  c.restore();
}

/** Packets of the flow by PSN in the last `span` us: a dot for each arrival, in the colour of its way. */
function arrivals(canvas, { now, span, fabric, ways, marks }) {
  const look = colours();
  const from = Math.max(0, now - span);
  const seen = [];
  let [low, high] = [Infinity, -Infinity];
  for (const way of ways) {
    if (way.kind !== "data" || way.lost || way.start > now || way.end < from || way.end > now || !way.done) continue;
    seen.push(way);
    [low, high] = [Math.min(low, way.psn), Math.max(high, way.psn)];
  }
  for (const { psn } of marks) [low, high] = [Math.min(low, psn), Math.max(high, psn)];
  if (low > high) [low, high] = [0, 10];
  const pad = Math.max(3, (high - low) * 0.06);
  const { c, x, y } = axes(canvas, look, { x: [from, Math.max(now, from + span)], y: [Math.max(0, low - pad), high + pad], unit: "µs" });
  for (const way of seen) {
    c.fillStyle = fabric.colour(way.top, look.paths);
    c.beginPath();
    c.arc(x(way.end), y(way.psn), 2.6, 0, 7);
    c.fill();
    if (way.again) {
      c.strokeStyle = look.bad;
      c.lineWidth = 1.5;
      c.beginPath();
      c.arc(x(way.end), y(way.psn), 4.2, 0, 7);
      c.stroke();
    }
  }
  for (const { at, psn, kind } of marks) {
    const [left, up] = [x(at), y(psn)];
    c.strokeStyle = c.fillStyle = look.bad;
    c.lineWidth = 1.8;
    c.beginPath();
    if (kind === "blocked") {
      c.moveTo(left - 3.5, up - 3.5);
      c.lineTo(left + 3.5, up + 3.5);
      c.moveTo(left + 3.5, up - 3.5);
      c.lineTo(left - 3.5, up + 3.5);
      c.stroke();
    } else {
      c.moveTo(left, up - 5);
      c.lineTo(left + 4.5, up + 3.5);
      c.lineTo(left - 4.5, up + 3.5);
      c.fill();
    }
  }
  c.restore();
}
