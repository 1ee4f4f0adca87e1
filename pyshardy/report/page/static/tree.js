/* The program as a tree by name scope and source line, with repeated parts folded; search and filters. */

const SCOPE = 0, LINE = 1, OP = 2, FOLDED = 3, PORTS = 4, PORT = 5, VALUE = 6;

class Tree {
  constructor(program, onselect, onregion) {
    this.program = program;
    this.onselect = onselect;
    this.onregion = onregion;
    this.root = el("ul", { role: "tree", class: "tree", "aria-label": "program" });
    this.rows = new Map();
    const sides = [["inputs", program.inputs], ["outputs", program.outputs]].filter(([, found]) => found.length);
    for (const [name, found] of sides) this.root.append(this.item({ kind: PORTS, name, ports: found }, 1));
    for (const node of program.tree) this.root.append(this.item(this.node(node), 1));
    this.root.addEventListener("keydown", (event) => this.key(event));
    const first = this.root.querySelector("[role=treeitem]");
    if (first) first.tabIndex = 0;
    if (program.tree.length === 1) this.toggle(this.root.lastChild, true);
  }

  node([name, kind, times, below]) {
    return { kind, name: this.program.texts[name], times, below };
  }

  /* The ops below a node, also those of its members. */
  opsOf(node) {
    if (!node.ops) node.ops = node.kind === OP ? node.below : (node.below || []).flatMap((one) => this.opsOf(this.node(one)));
    return node.ops;
  }

  valuesOf(node) {
    if (node.kind === PORTS) return node.ports.flatMap((port) => port[3]);
    if (node.kind === PORT) return node.port[3];
    if (node.kind === VALUE) return [node.value];
    return this.opsOf(node).flatMap((op) => this.program.results(op));
  }

  childrenOf(node) {
    if (node.kind === PORTS) return node.ports.map((port) => ({ kind: PORT, port, name: port[0] }));
    if (node.kind === PORT) return node.port[3].length > 1 ? node.port[3].map((value) => ({ kind: VALUE, value })) : [];
    if (node.kind === VALUE) return [];
    if (node.kind === OP && node.below.length > 1) return node.below.map((op) => ({ kind: VALUE, op, value: this.program.results(op)[0] }));
    if (node.kind === OP) return this.resultsOf(node).map((value) => ({ kind: VALUE, value }));
    return node.below.map((one) => this.node(one));
  }

  /* The results of a single op that has several. */
  resultsOf(node) {
    const results = this.program.results(node.below[0]);
    return results.length > 1 ? results : [];
  }

  hasChildren(node) {
    if (node.kind === PORT) return node.port[3].length > 1;
    if (node.kind === OP) return node.below.length > 1 || this.resultsOf(node).length > 0;
    return node.kind !== VALUE;
  }

  item(node, level) {
    const children = this.hasChildren(node);
    const row = el("div", { class: "row" });
    const item = el("li", { role: "treeitem", "aria-level": level, tabindex: -1, "aria-expanded": children ? "false" : null }, row);
    row.append(el("span", { class: "twisty", "aria-hidden": "true" }, children ? "▸" : ""), el("span", { class: "label" }, this.label(node)));
    row.style.paddingLeft = `${(level - 1) * 0.9}rem`;
    row.addEventListener("click", () => this.choose(item));
    this.rows.set(item, node);
    return item;
  }

  label(node) {
    const program = this.program;
    const values = this.valuesOf(node);
    if (node.kind === VALUE) return node.value === undefined ? [el("span", {}, program.opShort(node.op))] : this.valueLabel(node);
    const isLeaf = node.kind === OP || node.kind === PORT;
    const times = node.kind === PORT ? values.length : node.kind === PORTS ? values.length : node.times;
    const name = isLeaf && node.kind === OP ? node.name.replace(/^stablehlo\./, "") : node.name;
    const label = [el("span", { class: isLeaf || node.kind === LINE ? "name code" : "name" }, name)];
    if (times > 1) label.push(el("span", { class: "times" }, `×${times.toLocaleString("en")}`));
    if (isLeaf) {
      const tensor = values.length ? program.tensor(values[0]) : null;
      label.push(el("span", { class: "type" }, values.length ? program.typeText(values[0]) : ""), shardingChips(program, tensor));
      if (node.kind === PORT && node.port[2] === "user") label.push(el("span", { class: "tag" }, "given"));
      if (node.kind === OP) label.push(...this.tags(node.below));
    } else label.push(this.shares(values));
    return label;
  }

  valueLabel(node) {
    const program = this.program;
    const name = node.op === undefined ? program.valueName(node.value) : program.opText(node.op);
    return [el("span", { class: "name" }, rich(name)), el("span", { class: "type" }, program.typeText(node.value)), shardingChips(program, program.tensor(node.value)), ...(node.op === undefined ? [] : this.tags([node.op]))];
  }

  tags(ops) {
    const reshards = ops.reduce((sum, op) => sum + (this.program.reshards.get(op) || []).length, 0);
    const kinds = new Set(ops.flatMap((op) => (this.program.collectivesOf.get(op) || []).map((at) => kindName(this.program.collectives[at].kind))));
    const found = [...kinds].map((kind) => el("span", { class: "tag sends" }, kind));
    if (reshards && !kinds.size) found.push(el("span", { class: "tag sends" }, "reshard"));
    return found;
  }

  /* How much of a part of the program each axis splits. */
  shares(values) {
    const counts = new Map();
    for (const value of values) for (const axis of this.program.axesOf(value)) counts.set(axis, (counts.get(axis) || 0) + 1);
    return el("span", { class: "chips" }, this.program.meshAxes.filter((axis) => counts.has(axis)).map((axis) =>
      axisChip(this.program, axis, `${axis} ${percent(counts.get(axis), values.length)}`)));
  }

  choose(item) {
    const node = this.rows.get(item);
    this.focus(item);
    const isOpen = item.getAttribute("aria-expanded");
    if (isOpen !== null) this.toggle(item, isOpen === "false");
    const isLeaf = node.kind >= PORT || node.kind === OP;
    const [value] = isLeaf ? this.valuesOf(node) : [];
    if (value !== undefined) this.onselect(value);
    else if (node.kind === SCOPE || node.kind === LINE || node.kind === FOLDED) this.onregion(node.name, this.opsOf(node));
  }

  toggle(item, isOpen) {
    if (item.getAttribute("aria-expanded") === null) return;
    item.setAttribute("aria-expanded", String(isOpen));
    item.querySelector(".twisty").textContent = isOpen ? "▾" : "▸";
    const below = item.querySelector("[role=group]");
    if (below) below.hidden = !isOpen;
    else if (isOpen) this.grow(item, el("ul", { role: "group" }), this.childrenOf(this.rows.get(item)));
  }

  /* Adds children by the hundred; the last row asks for more. */
  grow(item, list, children) {
    const level = Number(item.getAttribute("aria-level")) + 1;
    if (!list.parentNode) item.append(list);
    for (const child of children.slice(0, MANY)) list.append(this.item(child, level));
    const rest = children.slice(MANY);
    if (!rest.length) return;
    const more = el("li", { role: "treeitem", "aria-level": level, tabindex: -1, class: "rest" }, `${rest.length.toLocaleString("en")} more`);
    this.rows.set(more, { kind: VALUE, value: undefined, op: undefined });
    more.addEventListener("click", () => {
      const before = more.previousSibling;
      more.remove();
      this.grow(item, list, rest);
      this.focus(before.nextSibling);
    });
    list.append(more);
  }

  focus(item) {
    for (const one of this.root.querySelectorAll("[tabindex='0'][role=treeitem]")) one.tabIndex = -1;
    item.tabIndex = 0;
    item.focus({ preventScroll: false });
  }

  key(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = [...this.root.querySelectorAll("[role=treeitem]")].filter((one) => !one.closest("[hidden]"));
    const at = shown.indexOf(item);
    const isOpen = item.getAttribute("aria-expanded");
    const parent = item.parentNode.closest("[role=treeitem]");
    const moves = {
      ArrowDown: () => shown[at + 1] && this.focus(shown[at + 1]),
      ArrowUp: () => shown[at - 1] && this.focus(shown[at - 1]),
      Home: () => this.focus(shown[0]),
      End: () => this.focus(shown[shown.length - 1]),
      ArrowRight: () => (isOpen === "false" ? this.toggle(item, true) : isOpen === "true" && shown[at + 1] && this.focus(shown[at + 1])),
      ArrowLeft: () => (isOpen === "true" ? this.toggle(item, false) : parent && this.focus(parent)),
      Enter: () => (item.classList.contains("rest") ? item.click() : this.choose(item)),
      " ": () => (item.classList.contains("rest") ? item.click() : this.choose(item)),
    };
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  }
}

/* What is searched: inputs, outputs and ops, each with its words. */
class Search {
  constructor(program) {
    this.program = program;
    this.entries = [];
    for (const [value, name] of program.portNames) this.add(value, -1, program.texts[name]);
    for (let op = 0; op < program.opCount; op += 1) {
      if (program.hidden[op]) continue;
      for (const value of program.results(op)) {
        this.add(value, op, [program.opText(op), program.opKind(op), program.texts[program.ops.scope[op]], program.place(op)].join(" "));
      }
    }
  }

  add(value, op, words) {
    this.entries.push({ value, op, words: words.toLowerCase() });
  }

  find(text, axis, kind) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const isInput = new Set(this.program.inputs.flatMap((port) => port[3]));
    const kinds = {
      "": () => true,
      inputs: (one) => one.op < 0 && isInput.has(one.value),
      outputs: (one) => one.op < 0 && !isInput.has(one.value),
      ops: (one) => one.op >= 0,
      reshards: (one) => this.program.reshards.has(one.op),
      collectives: (one) => this.program.collectivesOf.has(one.op),
    };
    const axes = (one) => !axis || (axis === "-" ? !this.program.axesOf(one.value).length : this.program.axesOf(one.value).includes(axis.slice(1)));
    return this.entries.filter((one) => kinds[kind](one) && words.every((word) => one.words.includes(word)) && axes(one));
  }
}

/* What was found, with values that differ only in numbers, such as those of layers, in one row each. */
function foldedResults(program, found) {
  const rows = new Map();
  for (const one of found) {
    const name = one.op < 0 ? program.texts[program.portNames.get(one.value)] : program.opText(one.op);
    const key = [general(name), one.op < 0, program.turn(one.value), program.typeText(one.value), program.stories.shardingText(one.value)].join("|");
    if (!rows.has(key)) rows.set(key, { names: [], found: [] });
    rows.get(key).names.push(name);
    rows.get(key).found.push(one);
  }
  return [...rows.values()];
}

function resultsList(program, rows) {
  const item = ({ value, op }, name) => [
    valueLink(program, value, rich(op < 0 ? `\`${name}\`` : name)), op < 0 ? "" : program.turn(value), " ",
    el("span", { class: "type" }, program.typeText(value)), " ", shardingChips(program, program.tensor(value))];
  const all = (row) => listOf(row.found, (one, at) => el("li", {}, item(one, row.names[at])), "ul", {}, 50);
  return listOf(rows, (row) => {
    if (row.found.length === 1) return el("li", {}, item(row.found[0], row.names[0]));
    const box = el("li", {}, item(row.found[0], common(row.names)), " ");
    const times = el("button", { type: "button", class: "times", "aria-expanded": "false", onclick: () => {
      const isOpen = times.getAttribute("aria-expanded") === "true";
      times.setAttribute("aria-expanded", String(!isOpen));
      if (isOpen) box.lastChild.remove();
      else box.append(all(row));
    } }, `×${row.found.length}`);
    box.append(times);
    return box;
  }, "ul", { class: "found" }, 100);
}
