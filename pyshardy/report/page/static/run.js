/* One estimated run: what runs when, the memory in use, and what limits each kernel. */

function duration(seconds) {
  const [size, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e-3, "ms"] : [1e-6, "us"];
  return `${(seconds / size).toFixed(1)} ${unit}`;
}

function amount(count, unit) {
  const names = ["", "K", "M", "G", "T", "P", "E"];
  let power = 0;
  while (power < names.length - 1 && count >= 999.5 * 1000 ** power) power += 1;
  const size = count / 1000 ** power;
  return `${size >= 100 || Number.isInteger(size) ? Math.round(size) : Number(size.toPrecision(2))} ${names[power]}${unit}`;
}

function boundsKey(run) {
  return el("p", { class: "quiet chips" }, run.bounds.map((name, at) => el("span", {}, el("i", { class: `key bound-${at}` }), `${name} `)));
}

function timelineCard(program) {
  const run = program.run;
  if (!run || !run.spans.length) return null;
  const used = run.tracks.map((name, at) => [name, at]).filter(([, at]) => at === 0 || run.spans.some(([track]) => track === at));
  const row = new Map(used.map(([, at], place) => [at, place]));
  const lane = 34, top = used.length * lane, graph = 56, most = Math.max(...run.memory.map(([, held]) => held), 1);
  const at = (seconds) => `${((100 * seconds) / run.seconds).toFixed(3)}%`;
  const names = used.map(([name], place) => svgEl("text", { x: 0, y: place * lane + 11, class: "label" }, name));
  const bars = run.spans.map(([track, start, seconds, name, line, bound, rounds]) => {
    const y = row.get(track) * lane + 15;
    const shape = rounds ? { y: y + 14, height: 3, class: "loop" } : { y, height: 13, class: bound < 0 ? "span sent" : `span bound-${bound}` };
    const told = `${name}: ${duration(seconds)}${rounds ? `, ${rounds} rounds, of which the first is shown` : ""}${bound < 0 ? "" : `, limited by ${run.bounds[bound]}`}${line ? `, ${line}` : ""}`;
    return svgEl("rect", { x: at(start), width: at(seconds), ...shape }, svgEl("title", {}, told));
  });
  const steps = run.memory.map(([start, held], place) => {
    const end = place + 1 < run.memory.length ? run.memory[place + 1][0] : run.seconds;
    const height = (graph * held) / most;
    return svgEl("rect", { x: at(start), width: at(Math.max(0, end - start)), y: top + 18 + graph - height, height, class: "held" }, svgEl("title", {}, `${bytes(held)} from ${duration(start)}`));
  });
  const picture = svgEl("svg", { class: "run", width: "100%", height: top + graph + 40, role: "img", "aria-label": `timeline of a run of ${duration(run.seconds)}; the table below has what takes longest` },
    names, bars, svgEl("text", { x: 0, y: top + 11, class: "label" }, `memory, up to ${bytes(most)}`), steps,
    svgEl("text", { x: 0, y: top + graph + 34, class: "label" }, "0"),
    svgEl("text", { x: "100%", y: top + graph + 34, class: "label end" }, duration(run.seconds)));
  const total = run.kernels.reduce((sum, one) => sum + one[4], 0);
  const rows = run.kernels.slice(0, 8).map(([name, line, , , seconds, count, bound]) =>
    [el("span", { class: "wrap" }, name), count > 1 ? `×${count}` : "", duration(seconds), percent(seconds, total), run.bounds[bound], line]);
  const section = card("A run, estimated",
    el("p", { class: "quiet" }, `on ${run.hardware}: ${duration(run.seconds)}. Of a loop the first round is drawn within the whole.`),
    boundsKey(run), picture,
    table([["kernels that take longest"], ["", "number"], ["time", "number"], ["of all kernels", "number"], ["limited by"], ["line"]], rows, { label: "kernels that take longest" }));
  section.classList.add("wide");
  return section;
}

function rooflineCard(program) {
  const run = program.run;
  if (!run) return null;
  const shown = run.kernels.filter(([, , flops, moved, seconds]) => flops > 0 && moved > 0 && seconds > 0);
  if (!shown.length) return null;
  const rest = run.kernels.filter((one) => !shown.includes(one)).reduce((sum, one) => sum + one[4], 0);
  const total = run.kernels.reduce((sum, one) => sum + one[4], 0);
  const ridge = run.flops / run.bandwidth;
  const xs = shown.map(([, , flops, moved]) => flops / moved);
  const ys = shown.map(([, , flops, , seconds, count]) => (flops * count) / seconds);
  const low = (values) => Math.floor(Math.log10(Math.min(...values))), high = (values) => Math.ceil(Math.log10(Math.max(...values)));
  const left = Math.max(-3, Math.min(low(xs), low([ridge]))), right = Math.max(high(xs), high([ridge * 2]));
  const bottom = Math.max(low(ys), high([run.flops]) - 7), up = high([run.flops]);
  const height = 260, room = 8;
  const x = (value) => `${(room + ((100 - room - 3) * (Math.log10(value) - left)) / (right - left)).toFixed(2)}%`;
  const y = (value) => (8 + (height * (up - Math.log10(Math.max(value, 10 ** bottom)))) / (up - bottom)).toFixed(1);
  const ticks = (from, to) => Array.from({ length: to - from + 1 }, (_, place) => from + place);
  const start = Math.max(10 ** left, 10 ** bottom / run.bandwidth);
  const lines = [
    ...ticks(left, right).map((power) => [svgEl("line", { x1: x(10 ** power), x2: x(10 ** power), y1: 8, y2: 8 + height, class: "grid" }), svgEl("text", { x: x(10 ** power), y: height + 24, class: "label middle" }, power < 0 ? String(10 ** power) : amount(10 ** power, ""))]),
    ...ticks(bottom, up).map((power) => [svgEl("line", { x1: x(10 ** left), x2: x(10 ** right), y1: y(10 ** power), y2: y(10 ** power), class: "grid" }), svgEl("text", { x: 0, y: Number(y(10 ** power)) + 4, class: "label" }, amount(10 ** power, ""))]),
    svgEl("line", { x1: x(start), y1: y(start * run.bandwidth), x2: x(ridge), y2: y(run.flops), class: "roof" }),
    svgEl("line", { x1: x(ridge), y1: y(run.flops), x2: x(10 ** right), y2: y(run.flops), class: "roof" }),
  ];
  const dots = shown.map(([name, line, flops, moved, seconds, count, bound], place) =>
    svgEl("circle", { cx: x(Math.max(xs[place], 10 ** left)), cy: y(ys[place]), r: (3 + 14 * Math.sqrt(seconds / total)).toFixed(1), class: `dot bound-${bound}` },
      svgEl("title", {}, `${name}${count > 1 ? ` ×${count}` : ""}: ${duration(seconds)}, ${amount(ys[place], "FLOP/s")}, ${xs[place].toPrecision(2)} FLOPs per byte, limited by ${run.bounds[bound]}${line ? `, ${line}` : ""}`)));
  const section = card("Which kernels are limited by what",
    el("p", { class: "quiet" }, `FLOP/s over FLOPs per byte, both logarithmic. The lines are the peaks of the chip: ${amount(run.bandwidth, "B/s")} and ${amount(run.flops, "FLOP/s")}. A dot is a kernel; the larger, the more of the time.${rest ? ` Kernels without FLOPs, ${percent(rest, total)} of the time, have no dot.` : ""}`),
    boundsKey(run),
    svgEl("svg", { class: "run", width: "100%", height: height + 32, role: "img", "aria-label": "roofline of the kernels; the table of a run has what takes longest" }, lines, dots));
  section.classList.add("wide");
  return section;
}
