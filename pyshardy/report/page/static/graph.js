/* The ops around a value, laid out by dagre; reshards and collectives stand out. */

const MOST_NODES = 60;

function region(program, value, hops) {
  const owner = program.values.owner[value];
  const isResult = owner >= 0 && program.results(owner).includes(value);
  const seeds = isResult ? [owner] : program.readers(value).slice(0, 12);
  const found = new Set(seeds);
  let edge = seeds;
  for (let hop = 0; hop < hops; hop += 1) {
    const next = [];
    for (const op of edge) {
      const makers = program.operands(op).map((one) => program.maker(one)).filter((one) => one >= 0);
      const users = program.results(op).flatMap((one) => program.readers(one).slice(0, 8));
      for (const near of [...makers, ...users]) {
        if (found.size >= MOST_NODES || found.has(near) || program.hidden[near]) continue;
        found.add(near);
        next.push(near);
      }
    }
    edge = next;
  }
  return [...found].filter((op) => !program.hidden[op]);
}

/* The first ops of a part of the program that hang together. */
function connected(program, ops) {
  const inside = new Set(ops);
  const found = new Set(ops.slice(0, 1));
  for (const op of found) {
    const makers = program.operands(op).map((one) => program.maker(one));
    const users = program.results(op).flatMap((one) => program.readers(one));
    for (const near of [...makers, ...users]) if (inside.has(near) && found.size < MOST_NODES) found.add(near);
  }
  for (const op of ops) if (found.size < MOST_NODES && ops.length <= MOST_NODES) found.add(op);
  return [...found];
}

function graphPart(program, value, hops, within = null) {
  const ops = within ? connected(program, within) : region(program, value, hops);
  if (!ops.length) return null;
  const inside = new Set(ops);
  const graph = new vendor.dagre.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 18, ranksep: 34, marginx: 8, marginy: 8 });
  graph.setDefaultEdgeLabel(() => ({}));
  const nodes = new Map();
  const add = (key, node) => {
    if (nodes.has(key)) return;
    const lines = [node.name, node.type].filter(Boolean);
    const sends = node.op === undefined ? [] : program.collectivesOf.get(node.op) || [];
    const kinds = [...new Set(sends.map((one) => kindName(program.collectives[one].kind)))];
    const badge = kinds.length > 1 ? `${kinds[0]} and ${kinds.length - 1} more` : kinds.join("");
    const width = Math.max(96, ...[...lines, badge].map((line) => line.length * 6.9 + 24), chipsWidth(program, node.value) + 20);
    nodes.set(key, { ...node, lines, kinds: kinds.join(", "), badge });
    graph.setNode(key, { width: Math.min(width, 260), height: 22 + 15 * lines.length + (hasChips(program, node.value) ? 19 : 0) + (badge ? 15 : 0) });
  };
  for (const op of ops) {
    const [result] = program.results(op);
    add(`o${op}`, { op, value: result, name: program.opShort(op), type: result === undefined ? "" : program.typeText(result) });
  }
  const edges = [];
  for (const op of ops) {
    const reshards = program.reshards.get(op) || [];
    program.operands(op).forEach((used, at) => {
      const one = program.source(used);
      const maker = program.maker(one);
      const isPort = maker < 0;
      if (!isPort && !inside.has(maker)) return;
      const key = isPort ? `v${one}` : `o${maker}`;
      if (isPort) add(key, { value: one, name: plainName(program.valueName(one)), type: program.typeText(one), isPort: true });
      const reshard = reshards.find((found) => found.tensor === at);
      const label = reshard ? `reshard ${bytes(reshard.bytes)}` : "";
      graph.setEdge(key, `o${op}`, label ? { label, width: label.length * 6.6, height: 16, labelpos: "c" } : {}, String(at));
      edges.push({ v: key, w: `o${op}`, name: String(at), label });
    });
  }
  vendor.dagre.layout(graph);
  return drawGraph(program, graph, nodes, edges, value);
}

function plainName(text) {
  return text.replace(/`/g, "");
}

function hasChips(program, value) {
  return value !== undefined && program.axesOf(value).length > 0;
}

function chipsWidth(program, value) {
  return hasChips(program, value) ? program.stories.shardingText(value).length * 6.6 : 0;
}

function drawGraph(program, graph, nodes, edges, selected) {
  const { width, height } = graph.graph();
  const lines = edges.map((edge) => edgeShape(graph.edge({ v: edge.v, w: edge.w, name: edge.name }), edge.label, graph.node(edge.v), graph.node(edge.w)));
  const boxes = [...nodes].map(([key, node]) => nodeShape(program, graph.node(key), node, selected));
  const svg = svgEl("svg", { viewBox: `0 0 ${Math.ceil(width)} ${Math.ceil(height)}`, width: Math.ceil(width), height: Math.ceil(height), class: "graph", role: "group", "aria-label": `graph of ${nodes.size} nodes` },
    svgEl("defs", {}, svgEl("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, svgEl("path", { d: "M0 0L8 4L0 8z", class: "head" }))),
    lines, boxes);
  return svg;
}

/* From the lower side of a node to the upper side of another, through the points of the layout. */
function edgeShape(found, label, from, to) {
  const within = (x, node) => Math.min(node.x + node.width / 2 - 12, Math.max(node.x - node.width / 2 + 12, x));
  const inner = found.points.slice(1, -1);
  const [near, far] = inner.length ? [inner[0].x, inner[inner.length - 1].x] : [from.x, to.x];
  const points = [{ x: within(near, from), y: from.y + from.height / 2 }, ...inner, { x: within(far, to), y: to.y - to.height / 2 }];
  const path = points.slice(1).reduce((text, point, at) => {
    const middle = (points[at].y + point.y) / 2;
    return `${text}C${points[at].x} ${middle} ${point.x} ${middle} ${point.x} ${point.y}`;
  }, `M${points[0].x} ${points[0].y}`);
  const shape = svgEl("g", { class: label ? "edge sends" : "edge" }, svgEl("path", { d: path, "marker-end": "url(#arrow)" }));
  if (label) {
    const wide = label.length * 6.6 + 10;
    shape.append(svgEl("rect", { x: found.x - wide / 2, y: found.y - 9, width: wide, height: 18, rx: 4 }), svgEl("text", { x: found.x, y: found.y + 4, "text-anchor": "middle" }, label));
  }
  return shape;
}

function nodeShape(program, at, node, selected) {
  const left = at.x - at.width / 2;
  const top = at.y - at.height / 2;
  const most = Math.floor((at.width - 16) / 6.9);
  const shape = svgEl("a", {
    class: ["node", node.isPort ? "port" : "", node.badge ? "sends" : "", node.value === selected ? "selected" : ""].join(" "),
    href: node.value === undefined ? null : `#${program.number}/v${node.value}`,
    "aria-label": `${node.lines.join(", ")} ${node.value === undefined ? "" : program.stories.shardingText(node.value)} ${node.kinds}`,
  }, svgEl("title", {}, [...node.lines, node.kinds].filter(Boolean).join("\n")),
  svgEl("rect", { x: left, y: top, width: at.width, height: at.height, rx: node.isPort ? 14 : 5 }));
  node.lines.forEach((line, number) => shape.append(svgEl("text", { x: at.x, y: top + 19 + 15 * number, "text-anchor": "middle", class: number ? "type" : "name" }, line.length > most ? `${line.slice(0, most - 1)}…` : line)));
  if (hasChips(program, node.value)) shape.append(axesShape(program, node.value, at.x, top + 15 * node.lines.length + 14));
  if (node.badge) shape.append(svgEl("text", { x: at.x, y: top + at.height - 9, "text-anchor": "middle", class: "badge" }, node.badge));
  return shape;
}

/* The axes of every dimension, as coloured words. */
function axesShape(program, value, x, y) {
  const sharding = program.sharding(value);
  const words = sharding.dims.map((axes) => (axes.length ? axes.map((axis) => [shortAxis(program.axes[axis]), program.colours[axis]]) : [["·", null]])).flat();
  const widths = words.map(([word]) => word.length * 6.4 + 10);
  let at = x - widths.reduce((sum, one) => sum + one, 0) / 2;
  return svgEl("g", {}, words.map(([word, colour], number) => {
    const left = at;
    at += widths[number];
    return [colour === null ? null : svgEl("rect", { x: left + 1, y, width: widths[number] - 2, height: 15, rx: 3, class: `axis axis-${colour}` }),
      svgEl("text", { x: left + widths[number] / 2, y: y + 11, "text-anchor": "middle", class: "axis-text" }, word)];
  }));
}

function graphSection(program, value, within = null) {
  const box = el("div", { class: "canvas", tabindex: "0", role: "group", "aria-label": "graph; scroll to see all of it" });
  const state = { hops: 2, zoom: 1 };
  let svg = null;
  const apply = () => {
    svg.style.width = `${svg.getAttribute("width") * state.zoom}px`;
    svg.style.height = `${svg.getAttribute("height") * state.zoom}px`;
  };
  const draw = () => {
    svg = graphPart(program, value, state.hops, within);
    if (!svg) return;
    box.replaceChildren(svg);
    apply();
    requestAnimationFrame(() => {
      const at = box.querySelector(".selected rect");
      if (!at) return;
      const inner = at.getBoundingClientRect(), outer = box.getBoundingClientRect();
      box.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
      box.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
    });
  };
  const zoom = (factor) => { state.zoom = Math.min(2.5, Math.max(0.25, state.zoom * factor)); apply(); };
  const select = el("select", { "aria-label": "how far the graph reaches", onchange: () => { state.hops = Number(select.value); draw(); } },
    [1, 2, 3, 5].map((hops) => el("option", { value: hops, selected: hops === state.hops }, `${counted(hops, "step")} around`)));
  draw();
  if (!svg) return el("section", { class: "card quiet" }, "No op of the program is around it.");
  return el("section", { class: "card" }, el("div", { class: "between" }, el("h2", {}, "Graph"), el("span", { class: "controls" }, within ? null : select,
    el("button", { type: "button", "aria-label": "smaller", onclick: () => zoom(0.8) }, "−"), el("button", { type: "button", "aria-label": "larger", onclick: () => zoom(1.25) }, "+"))),
    within && within.length > MOST_NODES ? el("p", { class: "quiet" }, `The first ${MOST_NODES} ops that hang together, of ${within.length.toLocaleString("en")}.`) : null, box);
}
