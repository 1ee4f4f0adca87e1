/* The propagation as a film: a cell per value in program order, coloured by the axes that it has by then. */

const POINT = "Point at a cell for its name.";

class Film {
  constructor(program) {
    this.program = program;
    this.moves = program.stories.moves;
    this.at = this.moves.length;
    this.timer = null;
    this.values = this.shown();
    this.places = new Map(this.values.map((value, at) => [value, at]));
    this.canvas = el("canvas", { class: "film", role: "img", "aria-label": "every value as a cell, coloured by its axes", onclick: (event) => this.click(event),
      onpointermove: (event) => this.point(event), onpointerleave: () => this.tell(undefined) });
    this.label = el("p", { class: "quiet label" }, POINT);
    this.range = el("input", { type: "range", min: 0, max: this.moves.length, value: this.at, "aria-label": "moves of propagation", oninput: () => this.show(Number(this.range.value)) });
    this.said = el("p", { class: "said" });
    this.counts = el("p", { class: "counts" });
    this.last = el("div", { class: "last" });
    this.play = el("button", { type: "button", onclick: () => this.toggle() }, "play");
  }

  /* The holders of shardings of values that a reader knows. */
  shown() {
    const program = this.program;
    const found = new Set();
    for (const side of [program.inputs, program.outputs]) for (const port of side) for (const value of port[3]) if (value >= 0) found.add(program.values.holder[value]);
    for (let op = 0; op < program.opCount; op += 1) if (!program.hidden[op]) for (const value of program.results(op)) found.add(program.values.holder[value]);
    return [...found].filter((value) => value >= 0 && program.tensor(value) && program.tensor(value).shape.length).sort((a, b) => a - b);
  }

  view() {
    const rounds = this.bounds();
    const jump = (to) => { this.stop(); this.show(to); };
    const buttons = rounds.map(([end, name], at) => el("button", { type: "button", onclick: () => jump(end) }, at ? `${at}. ${name}` : name));
    const section = card("How shardings spread",
      el("p", { class: "quiet" }, "Every cell is a value, in the order of the program; its colours are the mesh axes that it has by then. Propagation goes in rounds, by user priority and then by kinds of ops. Select a cell to see why."),
      el("div", { class: "controls" }, this.play, this.range), el("div", { class: "controls rounds" }, buttons),
      this.said, this.counts, this.canvas, this.label, el("h3", {}, "The last moves"), this.last);
    section.classList.add("wide");
    requestAnimationFrame(() => this.show(this.at));
    window.addEventListener("themechange", () => this.paint());
    new ResizeObserver(() => this.paint()).observe(section);
    return el("div", { class: "cards" }, section);
  }

  /* Where every round ends, with its name. */
  bounds() {
    const found = [[0, "as annotated"]];
    const rounds = this.program.stories.rounds;
    this.ends = rounds.map(() => 0);
    this.moves.forEach((move, at) => { this.ends[move[10]] = at + 1; });
    rounds.forEach(([user, op, strategy], round) => found.push([this.ends[round], `user priority ${user}, op priority ${op}, ${strategy}`]));
    return found;
  }

  axesAt(end) {
    const found = new Map();
    const put = (value, axis) => {
      if (!this.places.has(value)) return;
      if (!found.has(value)) found.set(value, new Set());
      found.get(value).add(this.program.axes[axis][0]);
    };
    for (const [value, list] of this.program.stories.placements) for (const one of list) if (one.step < 0 && this.places.has(value)) put(value, this.program.axes.indexOf(one.axis));
    for (const move of this.moves.slice(0, end)) put(move[0], move[2]);
    return found;
  }

  show(at) {
    this.at = at;
    this.range.value = at;
    this.state = this.axesAt(at);
    const program = this.program;
    const round = at ? this.moves[at - 1][10] : -1;
    const [user, op, strategy] = round < 0 ? [] : program.stories.rounds[round];
    const name = round < 0 ? "as annotated, before propagation"
      : `round ${round + 1} of ${program.stories.rounds.length}, user priority ${user}, op priority ${op}, ${strategy}`;
    this.said.textContent = `${at.toLocaleString("en")} of ${counted(this.moves.length, "move")}: ${name}`;
    const counts = new Map(program.meshAxes.map((axis) => [axis, 0]));
    for (const axes of this.state.values()) for (const axis of axes) counts.set(axis, (counts.get(axis) || 0) + 1);
    this.counts.replaceChildren(...[...counts].flatMap(([axis, count]) => [axisChip(program, axis, `${axis} ${percent(count, this.values.length)}`), " "]), `of ${counted(this.values.length, "value")}`);
    this.last.replaceChildren(el("ol", {}, this.moves.slice(Math.max(0, at - 6), at).reverse().map((move) => {
      const [target, , axis, , , source, , op, first] = move;
      return el("li", {}, axisChip(program, program.axes[axis][0], shortAxis(program.axes[axis])), " ", sentence(program, pieces(program, first, [], { target, source, op })));
    })));
    this.tell(this.pointed);
    this.paint();
  }

  paint() {
    const box = this.canvas.getBoundingClientRect();
    if (!box.width || !this.state) return;
    const scale = window.devicePixelRatio || 1;
    const count = this.values.length || 1;
    this.side = Math.max(4, Math.min(16, Math.floor(Math.sqrt((box.width * 420) / count))));
    this.columns = Math.max(1, Math.floor(box.width / this.side));
    const height = Math.ceil(count / this.columns) * this.side;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(box.width * scale);
    this.canvas.height = Math.round(height * scale);
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const gap = this.side > 6 ? 1 : 0.5;
    const size = this.side - gap;
    this.values.forEach((value, at) => {
      const x = (at % this.columns) * this.side;
      const y = Math.floor(at / this.columns) * this.side;
      const axes = [...(this.state.get(value) || [])];
      if (!axes.length) {
        context.fillStyle = colour("--line");
        context.fillRect(x, y, size, size);
      }
      axes.forEach((axis, number) => {
        context.fillStyle = colour(`--axis-${this.program.colour(axis)}`);
        context.fillRect(x + (number * size) / axes.length, y, size / axes.length, size);
      });
    });
  }

  /* The value of the cell where a pointer is. */
  valueAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.side);
    const value = this.values[Math.floor((event.clientY - box.top) / this.side) * this.columns + column];
    return column < this.columns ? value : undefined;
  }

  click(event) {
    const value = this.valueAt(event);
    if (value !== undefined) location.hash = `#${this.program.number}/v${value}`;
  }

  point(event) {
    this.tell(this.valueAt(event));
  }

  /* What the cell of a value is, and its axes by the move that is shown. */
  tell(value) {
    this.pointed = value;
    if (value === undefined) { this.label.textContent = POINT; return; }
    const axes = [...(this.state.get(value) || [])];
    this.label.replaceChildren(...rich(this.program.valueName(value)), ` ${this.program.typeText(value)}: ${axes.length ? `on ${axes.join(", ")}` : "whole"} by then`);
  }

  toggle() {
    if (this.timer) return this.stop();
    if (this.at >= this.moves.length) this.at = 0;
    const step = Math.max(1, Math.ceil(this.moves.length / 60));
    this.play.textContent = "pause";
    this.timer = setInterval(() => {
      if (!this.canvas.isConnected) return this.stop();
      this.show(Math.min(this.moves.length, this.at + step));
      return this.at >= this.moves.length ? this.stop() : null;
    }, 100);
    return null;
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "play";
  }
}
