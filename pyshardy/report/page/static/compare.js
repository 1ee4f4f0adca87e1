/* Two results side by side: their totals, and what differs. */

function compareView([a, b]) {
  const names = [a, b].map((program) => program.overview.source);
  return el("div", { class: "cards compare" }, totalsCard(a, b, names), portsCard(a, b, names, "inputs"), portsCard(a, b, names, "outputs"), sentCard(a, b, names), opsCard(a, b, names));
}

function wide(section) {
  section.classList.add("wide");
  return section;
}

function totalsCard(a, b, names) {
  const sums = [
    ["inputs per device", (one) => one.inputs[3]], ["outputs per device", (one) => one.outputs[3]],
    ["peak per device, estimated", (one) => (one.peak ? one.peak.bytes : null)], ["sent by each device", (one) => one.sent],
  ];
  const rows = sums.map(([name, read]) => {
    const [first, second] = [a, b].map((program) => read(program.overview));
    return [name, first === null ? "" : bytes(first), second === null ? "" : bytes(second), first === null || second === null ? "" : change(first, second)];
  });
  const meshes = [a, b].map((program) => program.overview.meshes.map((mesh) => mesh.axes.map((axis) => `${axis.name} ${axis.size}`).join(" × ")).join("; ") || "none");
  rows.unshift(["mesh", ...meshes, meshes[0] === meshes[1] ? "" : "differs"]);
  for (const [name, read] of [["collectives", (one) => one.collectives.reduce((sum, found) => sum + found.times, 0)], ["conflicts", (one) => one.conflicts.length]]) {
    rows.push([name, read(a).toLocaleString("en"), read(b).toLocaleString("en"), signed(read(b) - read(a))]);
  }
  return wide(card("Side by side", table([[""], [names[0], "number"], [names[1], "number"], ["change", "number"]], rows, { label: "totals" })));
}

function signed(number) {
  return number ? `${number > 0 ? "+" : "−"}${Math.abs(number).toLocaleString("en")}` : "same";
}

function change(first, second) {
  if (first === second) return "same";
  const sign = second > first ? "+" : "−";
  return `${sign}${bytes(Math.abs(second - first))}${first ? ` (${sign}${Math.round((100 * Math.abs(second - first)) / first)} %)` : ""}`;
}

function portsCard(a, b, names, side) {
  const read = (program) => new Map(program[side].flatMap((port) => port[3].filter((value) => value >= 0).map((value) => [program.texts[program.portNames.get(value)], value])));
  const [first, second] = [read(a), read(b)];
  const rows = new Map();
  for (const name of new Set([...first.keys(), ...second.keys()])) {
    const values = [first.get(name), second.get(name)];
    const texts = values.map((value, at) => (value === undefined ? "not there" : `${[a, b][at].typeText(value)} ${[a, b][at].stories.shardingText(value)}`));
    if (texts[0] === texts[1]) continue;
    const key = `${general(name)} ${texts.join(" ")}`;
    if (!rows.has(key)) rows.set(key, { names: [], values });
    rows.get(key).names.push(name);
  }
  return differing(a, b, names, `${side[0].toUpperCase()}${side.slice(1)} that differ`, [...rows.values()]);
}

function differing(a, b, names, title, rows) {
  if (!rows.length) return wide(card(title, el("p", { class: "quiet" }, "None.")));
  const cell = (program, value) => (value === undefined ? el("span", { class: "quiet" }, "not there")
    : el("span", {}, valueLink(program, value, program.typeText(value)), " ", shardingChips(program, program.tensor(value))));
  return wide(card(title, table([["name"], [names[0]], [names[1]]], rows.slice(0, MANY).map(({ names: alike, values }) => [
    [rich(quoted(common(alike))), alike.length > 1 ? el("span", { class: "times" }, `×${alike.length}`) : ""], cell(a, values[0]), cell(b, values[1])]), { label: title }),
  rows.length > MANY ? el("p", { class: "quiet" }, `and ${counted(rows.length - MANY, "more group")}`) : null));
}

function quoted(name) {
  return name.includes("`") ? name : `\`${name}\``;
}

function sentCard(a, b, names) {
  const key = (one) => [one.kind, one.axes, general(one.text.split(": ").slice(1).join(": "))].join("|");
  const read = (program) => {
    const found = new Map();
    for (const one of program.collectives) {
      const known = found.get(key(one)) || { one, sent: 0 };
      known.sent += one.bytes * one.times;
      found.set(key(one), known);
    }
    return found;
  };
  const [first, second] = [read(a), read(b)];
  const rows = [...new Set([...first.keys(), ...second.keys()])].map((name) => ({ first: first.get(name), second: second.get(name) }))
    .map((row) => ({ ...row, by: Math.abs((row.second ? row.second.sent : 0) - (row.first ? row.first.sent : 0)) })).filter((row) => row.by).sort((x, y) => y.by - x.by);
  if (!rows.length) return wide(card("Collectives that differ", el("p", { class: "quiet" }, "None.")));
  return wide(card("Collectives that differ", table([["collective"], [names[0], "number"], [names[1], "number"]], rows.slice(0, 50).map((row) => [
    el("span", { class: "wrap" }, rich((row.first || row.second).one.text)), row.first ? bytes(row.first.sent) : "none", row.second ? bytes(row.second.sent) : "none"]), { label: "collectives" })));
}

/* Ops are the same by name, place and turn; a run of equal differences is one row. */
function opsCard(a, b, names) {
  const read = (program) => {
    const found = new Map(), turns = new Map();
    for (let op = 0; op < program.opCount; op += 1) {
      const [value] = program.results(op);
      if (program.hidden[op] || value === undefined) continue;
      const name = [program.opText(op), program.texts[program.ops.scope[op]], program.ops.line[op]].join("|");
      const turn = turns.get(name) || 0;
      turns.set(name, turn + 1);
      found.set(`${name}|${turn}`, { op, value });
    }
    return found;
  };
  const [first, second] = [read(a), read(b)];
  const rows = new Map();
  for (const [key, one] of first) {
    const other = second.get(key);
    if (!other) continue;
    const texts = [a.stories.shardingText(one.value), b.stories.shardingText(other.value)];
    if (texts[0] === texts[1]) continue;
    const group = [general(a.opText(one.op)), a.typeText(one.value), ...texts].join("|");
    if (!rows.has(group)) rows.set(group, { names: [], values: [one.value, other.value] });
    rows.get(group).names.push(a.opText(one.op));
  }
  return differing(a, b, names, "Computed values that are sharded otherwise", [...rows.values()]);
}
