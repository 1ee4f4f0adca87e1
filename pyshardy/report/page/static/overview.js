/* The mesh, the bytes, and who sends what. */

function overviewView(programs) {
  const [program] = programs;
  const about = program.overview;
  return el("div", { class: "cards" },
    verdictCard(program), findingsCard(program), planCard(program), el("div", { class: "stack" }, meshCard(program), trafficCard(program)), el("div", { class: "stack" }, memoryCard(program), portsTotals(program)),
    largestCard(program), timelineCard(program), rooflineCard(program),
    about.warnings.length ? card(counted(about.warnings.length, "warning"), listOf(about.warnings, (text) => el("li", {}, text), "ul", {}, 8)) : null);
}

function verdictCard(program) {
  const about = program.overview;
  const [sharded, all] = about.sharded;
  const facts = [
    [bytes(about.inputs[3]), `inputs per device, of ${bytes(about.inputs[1])} unsharded`],
    about.peak ? [bytes(about.peak.bytes), "at the peak, estimated"] : null,
    [(about.is_lower_bound ? "≥ " : "") + bytes(about.sent), "sent by each device in a run"],
    [percent(sharded, all), `of ${all.toLocaleString("en")} computed tensors are sharded`],
    [String(program.conflicts.length), "places where shardings clash"],
    ...about.cost.map(([name, text]) => [text, name]),
  ];
  return el("section", { class: "card wide facts", "aria-label": "in short" },
    facts.filter(Boolean).map(([figure, what]) => el("div", {}, el("b", {}, figure), el("span", {}, what))));
}

function findingsCard(program) {
  const found = program.overview.findings;
  if (!found) return null;
  const section = card("What costs most", found.length
    ? el("ol", { class: "stories" }, found.map(([what, why, cure, worth, patch]) => el("li", {},
      el("p", {}, el("b", {}, rich(what))),
      why ? el("p", { class: "quiet" }, rich(why)) : null,
      el("p", { class: "hint" }, rich(cure)),
      patch ? el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "patch" }, el("pre", { text: patch })) : null,
      el("p", {}, worth))))
    : el("p", { class: "quiet" }, "Nothing was found that costs 1% or more."));
  section.classList.add("wide");
  return section;
}

function meshCard(program) {
  const meshes = program.overview.meshes;
  return card("Mesh", meshes.length ? meshes.map((mesh) => el("div", {},
    el("p", {}, el("code", {}, mesh.name), " · ", mesh.axes.map((axis) => [axisChip(program, axis.name, `${axis.name} ${axis.size}`), " "])),
    meshPicture(program, mesh))) : el("p", { class: "quiet" }, "no mesh with axes: everything is on one device"));
}

function memoryCard(program) {
  const about = program.overview;
  const peak = about.peak;
  const parts = peak ? peak.categories : about.kinds.map(([name, , , size]) => [name, size]);
  const total = parts.reduce((sum, [, size]) => sum + size, 0);
  const rows = parts.map(([name, size], at) => [[el("i", { class: `key tone-${at % 8}` }), name], bytes(size), percent(size, total)]);
  return card("Bytes per device",
    el("p", { class: "quiet" }, peak ? `at the peak, estimated: ${bytes(total)}` : "inputs"),
    bar(parts.map(([, size], at) => [size, `tone-${at % 8}`]), total, "bytes by kind; the table below has the figures"),
    table([["kind"], ["bytes", "number"], ["share", "number"]], rows, { label: "bytes by kind" }));
}

function portsTotals(program) {
  const about = program.overview;
  const stages = [["unsharded", 1], ["as annotated", 2], ["as propagated", 3]].map(([name, at]) =>
    [name, bytes(about.inputs[at]), bytes(about.outputs[at])]);
  const kinds = about.kinds.map(([name, count, whole, held]) => [`${name} (${count})`, bytes(whole), bytes(held)]);
  return card("Inputs and outputs",
    table([["inputs"], ["whole", "number"], ["per device", "number"]], kinds, { label: "inputs by kind" }),
    table([["per device"], ["inputs", "number"], ["outputs", "number"]], stages, { label: "inputs and outputs" }));
}

function trafficCard(program) {
  const groups = new Map();
  for (const one of program.collectives) {
    const key = one.axes ? one.axes.join(", ") : "no axis";
    const found = groups.get(key) || { axes: one.axes, sent: 0, kinds: new Map() };
    const sent = one.bytes * one.times;
    const kind = found.kinds.get(one.kind) || [0, 0];
    found.kinds.set(one.kind, [kind[0] + one.times, kind[1] + sent]);
    found.sent += sent;
    groups.set(key, found);
  }
  const found = [...groups.values()].sort((a, b) => b.sent - a.sent);
  const most = Math.max(1, ...found.map((group) => group.sent));
  if (!found.length) return card("Collectives by axis", el("p", { class: "quiet" }, "no collectives: the devices do not talk to each other"));
  return card("Collectives by axis", found.map((group) => el("div", { class: "group" },
    el("p", { class: "between" }, el("span", {}, group.axes ? group.axes.map((axis) => [axisChip(program, axisName(axis), plainAxis(axis)), " "]) : "no axis"), el("b", {}, bytes(group.sent))),
    bar([[group.sent, group.axes ? `axis-${program.colour(axisName(group.axes[0]))}` : "tone-7"], [most - group.sent, "rest"]], most, `${bytes(group.sent)} sent`),
    table([["kind"], ["runs", "number"], ["bytes sent", "number"]], [...group.kinds].map(([kind, [times, sent]]) => [kindName(kind), times.toLocaleString("en"), bytes(sent)]), { label: "collectives by kind" }))));
}

function axisName(text) {
  const end = text.lastIndexOf('"');
  return text.slice(1, end);
}

function plainAxis(text) {
  return text.endsWith('"') ? axisName(text) : text;
}

function kindName(kind) {
  return kind.replace(/_/g, "-");
}

function largestCard(program) {
  const found = program.collectives.slice(0, 5);
  if (!found.length) return null;
  const section = card("The largest collectives", el("ol", { class: "stories" }, found.map((one) => collectiveItem(program, one))));
  section.classList.add("wide");
  return section;
}

function collectiveItem(program, one) {
  const [value] = one.values;
  const [op] = one.ops;
  const links = [];
  if (op !== undefined) links.push(el("span", {}, "op: ", opLink(program, op), one.ops.length > 1 ? ` and ${one.ops.length - 1} more` : ""));
  if (value !== undefined) links.push(el("span", {}, "operand: ", valueLink(program, value)));
  const [head, ...rest] = one.text.split(": ");
  return el("li", {},
    el("p", {}, el("b", {}, `${bytes(one.bytes * one.times)} in all. `), head, ": ", rich(rest.join(": "))),
    one.hint ? el("p", { class: "hint" }, el("b", {}, "Hint: "), rich(one.hint)) : null,
    links.length ? el("p", { class: "quiet links" }, links) : null);
}

function collectivesView([program]) {
  return el("div", { class: "cards" }, (() => {
    const section = card(counted(program.collectives.length, "kind") + " of collectives",
      el("p", { class: "quiet" }, "Those that are alike are one. The largest come first."),
      program.collectives.length ? listOf(program.collectives, (one) => collectiveItem(program, one), "ol", { class: "stories" }, 30) : el("p", {}, "The devices do not talk to each other."));
    section.classList.add("wide");
    return section;
  })());
}

function conflictsView([program]) {
  const groups = new Map();
  for (const [op, tensor, value, sent, template, ...numbers] of program.conflicts) {
    const found = pieces(program, template, numbers);
    const key = `${sent} ${general(plain(program, found))}`;
    if (!groups.has(key)) groups.set(key, { found, sent, count: 0, value, op });
    groups.get(key).count += 1;
  }
  const rows = [...groups.values()].sort((a, b) => b.sent * b.count - a.sent * a.count);
  const section = card(counted(program.conflicts.length, "conflict"),
    el("p", { class: "quiet" }, rows.length ? "Where two shardings met and one lost, with the bytes that a device sends for the reshard that follows." : "All shardings that meet agree."),
    rows.length ? listOf(rows, (row) => el("li", {}, el("p", {}, el("b", {}, bytes(row.sent * row.count)), row.count > 1 ? el("span", { class: "times" }, `×${row.count}`) : "", " ", sentence(program, row.found)),
      el("p", { class: "quiet links" }, el("span", {}, "value: ", valueLink(program, row.value)), el("span", {}, "op: ", opLink(program, row.op)))), "ol", { class: "stories" }, 30) : null);
  section.classList.add("wide");
  return el("div", { class: "cards" }, section);
}
