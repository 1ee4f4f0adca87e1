/* A plan of shardings, and what it was chosen from: time against memory. */

function planCard(program) {
  const plan = program.plan;
  if (!plan) return null;
  const [own] = plan.rows;
  const mesh = plan.mesh.map(([name, size]) => `${name}=${size}`).join(", ");
  const section = card("The plan",
    el("p", { class: "quiet" }, `for ${plan.hardware}, mesh ${mesh}; chosen by ${plan.goal}; all figures are estimates.`),
    table([["inputs"], ["count", "number"], ["sharding"]], plan.rules.map(([pattern, count, spec]) => [el("code", {}, pattern), String(count), el("code", {}, spec)]), { label: "rules, the first that fits decides" }),
    plan.constraints.length ? table([["constraint after"], ["value"], ["sharding"], ["why"]], plan.constraints.map(([place, value, spec, why]) => [place, rich(value), el("code", {}, spec), el("span", { class: "wrap" }, why)]), { label: "constraints of intermediate values" }) : null,
    el("h3", {}, "What it was chosen from"),
    planPicture(plan, own),
    planTable(plan, own),
    plan.notes.length ? listOf(plan.notes, (text) => el("li", {}, rich(text)), "ul", { class: "quiet" }, 8) : null);
  section.classList.add("wide");
  return section;
}

/* Of ways that take much longer or need much more than the limit, only the table tells. */
function drawnRows(plan, own) {
  const most = 3 * own[1], largest = Math.max(1.25 * plan.limit, own[2]);
  return plan.rows.map((row, at) => [row, at]).filter(([[, seconds, size]]) => seconds <= most && size <= largest);
}

function planPicture(plan, own) {
  const shown = drawnRows(plan, own);
  const largest = Math.max(...shown.map(([[, , size]]) => size));
  const right = 1.05 * Math.max(largest, plan.limit <= 2 * largest ? plan.limit : 0);
  const slowest = 1.05 * Math.max(...shown.map(([[, seconds]]) => seconds));
  const fastest = 0.9 * Math.min(...shown.map(([[, seconds]]) => seconds));
  const height = 240, room = 9;
  const x = (size) => `${(room + ((98 - room) * size) / right).toFixed(2)}%`;
  const y = (seconds) => (10 + (height * (slowest - seconds)) / (slowest - fastest)).toFixed(1);
  const ticks = [0, 1, 2, 3, 4];
  const grid = ticks.map((at) => {
    const size = (right * at) / 4, seconds = fastest + ((slowest - fastest) * at) / 4;
    return [
      svgEl("line", { x1: x(size), x2: x(size), y1: 10, y2: 10 + height, class: "grid" }),
      svgEl("text", { x: x(size), y: height + 26, class: at === 4 ? "label end" : "label middle" }, bytes(Math.round(size))),
      svgEl("line", { x1: x(0), x2: x(right), y1: y(seconds), y2: y(seconds), class: "grid" }),
      svgEl("text", { x: 0, y: Number(y(seconds)) + 4, class: "label" }, duration(seconds)),
    ];
  });
  const limit = plan.limit <= right ? [
    svgEl("line", { x1: x(plan.limit), x2: x(plan.limit), y1: 10, y2: 10 + height, class: "roof" }, svgEl("title", {}, `a device may use ${bytes(plan.limit)}`)),
  ] : [];
  const dots = [...shown].reverse().map(([[name, seconds, size, fits, kind], at]) =>
    svgEl("circle", { cx: x(size), cy: y(seconds), r: kind === 0 ? 8 : 5, class: `dot plan-${kind}` },
      svgEl("title", {}, `${at}. ${name || plan.kinds[kind]}: ${duration(seconds)}, ${bytes(Math.round(size))}${fits ? "" : ", does not fit"}`)));
  const left = plan.rows.length - shown.length;
  return el("div", {},
    el("p", { class: "quiet chips" }, plan.kinds.map((name, at) => el("span", {}, el("i", { class: `key plan-${at}` }), `${name} `))),
    svgEl("svg", { class: "run", width: "100%", height: height + 34, role: "img", "aria-label": "time of a step over peak memory; the table below has the figures" }, grid, limit, dots),
    el("p", { class: "quiet" }, `Time of a step over the peak memory of a device${limit.length ? "; the line is what a device has" : ""}.${left ? ` ${counted(left, "slower or larger way")} ${left === 1 ? "is" : "are"} only in the table.` : ""}`));
}

function planTable(plan, own) {
  const rows = plan.rows.map(([name, seconds, size, fits, kind], at) =>
    [String(at), el("span", { class: "wrap" }, kind === 0 ? el("b", {}, name) : name || plan.kinds[kind]), duration(seconds), (seconds / own[1]).toFixed(2), bytes(Math.round(size)), fits ? "yes" : "no"]);
  return el("details", {}, el("summary", {}, `${counted(rows.length, "way")} with ${rows.length === 1 ? "its" : "their"} figures`),
    table([["", "number"], ["way"], ["step", "number"], ["vs. plan", "number"], ["peak", "number"], ["fits"]], rows, { label: "ways to shard the program" }));
}
