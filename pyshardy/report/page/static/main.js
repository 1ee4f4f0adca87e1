/* The page: tabs, what is selected, themes. */

const programs = [...document.querySelectorAll("script.result")].map((node, number) => new Program(JSON.parse(node.textContent), number));
const page = { at: 0, tab: "overview", value: null, views: new Map() };

const TABS = [
  ["overview", "Overview", () => overviewView(chosen())],
  ["program", "Program", () => programView(programs[page.at])],
  ["collectives", "Collectives", () => collectivesView(chosen())],
  ["conflicts", "Conflicts", () => conflictsView(chosen())],
  ["film", "Propagation", () => new Film(programs[page.at]).view()],
  ...(programs.length > 1 ? [["compare", "Compare", () => compareView(programs)]] : []),
];

function chosen() {
  return [programs[page.at]];
}

function programView(program) {
  const tree = new Tree(program, (value) => { location.hash = `#${program.number}/v${value}`; }, (name, ops) => panel.replaceChildren(
    el("section", { class: "card panel", "aria-labelledby": "selected" }, regionPanel(program, name, ops)), graphSection(program, null, ops)));
  const panel = el("div", { id: "panel" });
  const list = el("div", { id: "list" }, tree.root);
  const found = el("div", { id: "found", hidden: true });
  const count = el("p", { class: "quiet", role: "status" });
  const text = el("input", { type: "search", id: "search", placeholder: "name, file:line, scope, op", "aria-label": "search", oninput: () => later() });
  const axis = el("select", { "aria-label": "filter by axis", onchange: () => find() }, el("option", { value: "" }, "any sharding"), el("option", { value: "-" }, "whole"),
    program.meshAxes.map((name) => el("option", { value: `=${name}` }, `on ${name}`)));
  const kind = el("select", { "aria-label": "filter by kind", onchange: () => find() }, [["", "all"], ["inputs", "inputs"], ["outputs", "outputs"], ["ops", "ops"], ["reshards", "with a reshard"], ["collectives", "with a collective"]]
    .map(([value, name]) => el("option", { value }, name)));
  let search = null, timer = null;
  const find = () => {
    const isOn = Boolean(text.value.trim() || axis.value || kind.value);
    list.hidden = isOn;
    found.hidden = !isOn;
    if (!isOn) { count.textContent = ""; return; }
    search = search || new Search(program);
    const all = search.find(text.value, axis.value, kind.value);
    const rows = foldedResults(program, all);
    count.textContent = counted(all.length, "value") + " found" + (rows.length < all.length ? ` in ${counted(rows.length, "row")}` : "");
    found.replaceChildren(resultsList(program, rows));
  };
  const later = () => { clearTimeout(timer); timer = setTimeout(find, 80); };
  const view = el("div", { class: "split" },
    el("section", { class: "card browse", "aria-label": "program" }, el("div", { class: "filters" }, text, axis, kind), count, list, found),
    el("div", { class: "side" }, panel));
  view.show = (value) => {
    panel.replaceChildren(...(value === null ? [el("section", { class: "card quiet" }, "Select a value to see its blocks on the devices, why it is sharded so, and what is around it.")]
      : [el("section", { class: "card panel", "aria-labelledby": "selected" }, panelOf(program, value)), graphSection(program, value)]));
  };
  view.show(page.value);
  return view;
}

function open(tab) {
  page.tab = tab;
  const key = `${page.at} ${tab}`;
  if (!page.views.has(key)) page.views.set(key, TABS.find(([name]) => name === tab)[2]());
  const main = document.getElementById("main"), view = page.views.get(key);
  if (main.firstChild !== view) main.replaceChildren(view); // what has the focus keeps it
  for (const button of document.querySelectorAll("#tabs [role=tab]")) {
    const isOn = button.dataset.tab === tab;
    button.setAttribute("aria-selected", String(isOn));
    button.tabIndex = isOn ? 0 : -1;
    if (isOn) button.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  for (const button of document.querySelectorAll("#results button")) button.setAttribute("aria-pressed", String(Number(button.dataset.number) === page.at));
}

/* `#0/v12` is value 12 of the first result, `#1/film` a tab of the second. */
function follow() {
  const match = /^#(\d+)\/(?:v(\d+)|(\w+))$/.exec(location.hash);
  if (!match || !programs[match[1]]) return open(page.tab);
  page.at = Number(match[1]);
  const isValue = match[2] !== undefined && Number(match[2]) < programs[page.at].valueCount;
  if (!isValue) return open(TABS.some(([name]) => name === match[3]) ? match[3] : "overview");
  page.value = Number(match[2]);
  open("program");
  page.views.get(`${page.at} program`).show(page.value);
  document.getElementById("status").textContent = `selected ${programs[page.at].valueName(page.value).replace(/`/g, "")}`;
  if (window.innerWidth < 900) document.getElementById("panel").scrollIntoView();
  return undefined;
}

function tabKey(event) {
  const buttons = [...document.querySelectorAll("#tabs [role=tab]")];
  const at = buttons.indexOf(event.target);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = buttons[(to + buttons.length) % buttons.length];
  next.focus();
  next.click();
}

function start() {
  const about = programs[0].overview;
  document.getElementById("about").textContent = [about.source === about.title ? "" : about.source, counted(about.devices, "device")].filter(Boolean).join(" · ");
  const tabs = document.getElementById("tabs");
  for (const [name, title] of TABS) tabs.append(el("button", { type: "button", role: "tab", "data-tab": name, "aria-controls": "main", onclick: () => { location.hash = `#${page.at}/${name}`; } }, title));
  tabs.addEventListener("keydown", tabKey);
  if (programs.length > 1) {
    programs.forEach((program, number) => document.getElementById("results").append(el("button", { type: "button", "data-number": number,
      onclick: () => { page.value = null; location.hash = `#${number}/${page.tab}`; } }, program.overview.source)));
  }
  document.getElementById("theme").addEventListener("click", () => {
    const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = isDark ? "light" : "dark";
    window.dispatchEvent(new Event("themechange"));
  });
  window.addEventListener("hashchange", follow);
  follow();
}

start();
