/* Parts that several views show: links, chips, the mesh, and blocks on devices. */

function valueLink(program, value, text) {
  return el("a", { href: `#${program.number}/v${value}` }, text === undefined ? rich(program.valueName(value)) : text);
}

function opLink(program, op) {
  const [result] = op < program.opCount ? program.results(op) : [];
  const inside = rich(program.opText(op));
  return result === undefined ? el("span", {}, inside) : el("a", { href: `#${program.number}/v${result}` }, inside);
}

function sentence(program, found) {
  return found.map((one) => {
    if ("op" in one) return opLink(program, one.op);
    return "value" in one ? valueLink(program, one.value) : rich(one.text);
  });
}

function axisChip(program, name, text) {
  return el("span", { class: `chip axis-${program.colour(name)}` }, text || name);
}

/* One chip per dimension: its axes, or a dot where it is whole. */
function shardingChips(program, tensor) {
  const sharding = tensor && program.shardings[tensor.sharding];
  if (!sharding || !sharding.dims.some((axes) => axes.length)) return el("span", { class: "quiet" }, tensor && tensor.shape.length ? "whole" : "");
  const dims = sharding.dims.map((axes) => (axes.length
    ? axes.map((axis) => axisChip(program, program.axes[axis][0], shortAxis(program.axes[axis])))
    : el("span", { class: "whole" }, "·")));
  return el("span", { class: "chips", role: "img", "aria-label": `sharding ${sharding.text}` }, dims);
}

function shortAxis([name, , , text]) {
  return text === `"${name}"` ? name : text;
}

/* How a tensor is cut, in words: for those that are too much to draw. */
function blocksText(program, tensor) {
  const counts = tensor.shape.map((size, dim) => (tensor.local[dim] ? Math.ceil(size / tensor.local[dim]) : 1));
  const blocks = counts.reduce((all, count) => all * count, 1);
  const devices = program.overview.devices;
  if (blocks === 1) return `Each of the ${devices.toLocaleString("en")} devices has all of it.`;
  return `Cut into ${counts.join(" × ")} blocks, each on ${counted(Math.round(devices / blocks), "device")}; too many devices or dimensions to draw.`;
}

function picture(tensor) {
  const made = tensor && tensor.picture;
  if (!made) return null;
  const [width, height] = made.size;
  const top = 22;
  const texts = made.texts.map(([x, y, text, anchor]) => svgEl("text", { x, y: y - top, "text-anchor": anchor }, text));
  const blocks = made.blocks.map(([x, y, w, h, colour, label, place]) => svgEl("g", {},
    svgEl("title", {}, `${place} on devices ${label}`),
    svgEl("rect", { x, y: y - top, width: w, height: h, fill: colour, class: "block" }),
    svgEl("text", { x: x + w / 2, y: y - top + h / 2 + 4, "text-anchor": "middle", class: "on-block" }, label)));
  const right = Math.max(60, ...made.blocks.map(([x, , w]) => x + w), ...made.texts.map(([x, , text, anchor]) => (anchor === "start" ? x + text.length * 7.3 : 0))) + 8;
  return svgEl("svg", { viewBox: `0 0 ${right} ${height - top}`, width: right, height: height - top, class: "picture", role: "img", "aria-label": "blocks by device" }, texts, blocks);
}

/* The devices of a mesh: its last axis to the right, the one before downwards, further ones as several grids. */
function meshPicture(program, mesh) {
  const axes = mesh.axes;
  const size = axes.reduce((all, axis) => all * axis.size, 1);
  if (!axes.length) return el("p", { class: "quiet" }, "one device");
  const columns = axes[axes.length - 1];
  const rows = axes.length > 1 ? axes[axes.length - 2] : { name: "", size: 1 };
  const outer = axes.slice(0, -2);
  const per = rows.size * columns.size;
  const most = size > 1024 || columns.size > 64 || rows.size > 64;
  const text = axes.map((axis) => `${axis.name} ${axis.size}`).join(" × ");
  if (most) return el("p", {}, `${text}: ${size.toLocaleString("en")} devices, too many to draw`);
  const longest = Math.max(columns.size, rows.size);
  const side = longest <= 8 && size <= 64 ? 40 : longest <= 16 ? 28 : 20;
  const grids = [];
  for (let at = 0; at * per < Math.min(size, 8 * per); at += 1) grids.push(meshGrid(program, mesh, { rows, columns, outer, at, side, per }));
  const left = size / per - grids.length;
  return el("div", {}, el("div", { class: "meshes" }, grids), left > 0 ? el("p", { class: "quiet" }, `and ${left} more such grids`) : null);
}

function meshGrid(program, mesh, { rows, columns, outer, at, side, per }) {
  const left = rows.name ? 32 : 4;
  const top = outer.length ? 40 : 22;
  const width = left + columns.size * side + 4;
  const height = top + rows.size * side + 4;
  const cells = [];
  for (let place = 0; place < per; place += 1) {
    const device = mesh.device_ids ? mesh.device_ids[at * per + place] : at * per + place;
    const x = left + (place % columns.size) * side;
    const y = top + Math.floor(place / columns.size) * side;
    cells.push(svgEl("rect", { x, y, width: side - 2, height: side - 2, rx: 4, class: "device" }));
    if (side >= 28 || device < 100) cells.push(svgEl("text", { x: x + side / 2 - 1, y: y + side / 2 + 3, "text-anchor": "middle" }, device));
  }
  const heads = [svgEl("text", { x: left, y: top - 7, class: `axis-name axis-${program.colour(columns.name)}` }, `${columns.name} →`)];
  if (rows.name) heads.push(svgEl("text", { transform: `translate(${left - 18} ${top + 2}) rotate(90)`, class: `axis-name axis-${program.colour(rows.name)}` }, `${rows.name} →`));
  let number = at;
  const places = outer.slice().reverse().map((axis) => {
    const found = `${axis.name} ${number % axis.size}`;
    number = Math.floor(number / axis.size);
    return found;
  });
  if (outer.length) heads.push(svgEl("text", { x: left, y: 14 }, places.reverse().join(", ")));
  const longest = Math.max(width, left + 8 * (columns.name.length + 3), 8 * places.join(", ").length + left);
  const tall = Math.max(height, rows.name ? top + 9 * (rows.name.length + 3) : 0);
  return svgEl("svg", { viewBox: `0 0 ${longest} ${tall}`, width: longest, height: tall, role: "img", "aria-label": "devices of the mesh" }, cells, heads);
}
