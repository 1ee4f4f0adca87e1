"use strict";
/* Elements, numbers and texts. What a program says becomes text nodes and attributes, never markup. */

const MARK = "\ue000";
const SVG = "http://www.w3.org/2000/svg";
const MANY = 200;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(2)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svgEl(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function bytes(count) {
  if (count < 1024) return `${count} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let power = 1;
  while (power < units.length && Math.round((count / 1024 ** power) * 10) / 10 >= 1024) power += 1;
  return `${(count / 1024 ** power).toFixed(1)} ${units[power - 1]}`;
}

function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}

function percent(part, whole) {
  if (!whole || !part) return "0 %";
  const share = (100 * part) / whole;
  return share < 1 ? "< 1 %" : share > 99 && part < whole ? "> 99 %" : `${Math.round(share)} %`;
}

/* Text in which backticks mark code. */
function rich(text) {
  const parts = text.split("`");
  return parts.map((part, index) => (index % 2 && index < parts.length - 1 ? el("code", { text: part }) : part));
}

/* A list that shows its first rows, and more on request. */
function listOf(items, make, tag = "ul", attributes = {}, step = 50) {
  const list = el(tag, attributes);
  const box = el("div", {}, list);
  let shown = 0;
  const more = el("button", { type: "button", class: "more", onclick: () => grow() });
  function grow() {
    const first = shown;
    for (const item of items.slice(shown, shown + step)) list.append(make(item, shown++));
    more.textContent = `${(items.length - shown).toLocaleString("en")} more`;
    if (shown >= items.length) more.remove();
    if (first) (list.children[first].querySelector("a, button") || list.children[first]).focus();
  }
  grow();
  if (shown < items.length) box.append(more);
  return box;
}

function table(heads, rows, attributes = {}) {
  if (!rows.length) return null;
  const head = el("tr", {}, heads.map((one) => el("th", { scope: "col", class: one[1] || null }, one[0])));
  const body = rows.map((row) =>
    el("tr", {}, row.map((cell, at) => el("td", { class: heads[at][1] || null }, cell))));
  return el("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": attributes.label || "table" },
    el("table", {}, el("thead", {}, head), el("tbody", {}, body)));
}

function card(title, ...children) {
  return el("section", { class: "card" }, el("h2", {}, title), children);
}

function bar(parts, total, label) {
  return el("div", { class: "bar", role: "img", "aria-label": label }, parts.filter(([size]) => size > 0).map(([size, kind]) => {
    const part = el("span", { class: kind });
    part.style.flexGrow = String(size / (total || 1));
    return part;
  }));
}
