/* Why a value is sharded as it is: chains from where an axis was given, and the reasons of what stayed whole. */

class Explainer {
  constructor(program, data) {
    this.program = program;
    this.rounds = data.rounds;
    this.moves = data.moves;
    this.placements = new Map();
    for (const [value, dim, axis, isManual, isOwn, ...sentence] of data.given) {
      this.put(value, { dim, axis: program.axes[axis], step: isManual ? -2 : -1, isOwn, sentence });
    }
    for (const [value, dim, axis, step, start, source, sourceDim, op, first, rest] of data.moves) {
      this.put(value, { target: value, dim, axis: program.axes[axis], step, start, source, sourceDim, op, first, rest });
    }
    this.whole = keyed(data.whole);
    this.dropped = keyed(data.dropped);
  }

  put(value, placement) {
    if (!this.placements.has(value)) this.placements.set(value, []);
    this.placements.get(value).push(placement);
  }

  chains(value, dim, axis) {
    const found = [];
    const todo = [[value, dim, axis, Infinity, null]];
    while (todo.length) {
      const [at, atDim, wanted, before, links] = todo.pop();
      const parts = [];
      for (const one of this.placements.get(at) || []) {
        const part = one.dim === atDim && one.step < before ? overlap(one.axis, wanted) : null;
        if (!part) continue;
        if (one.step < 0) found.push({ axis: part, given: one, moves: [...linked(links)] });
        else parts.push([one.source, one.sourceDim, part, one.start, { move: one, next: links }]);
      }
      todo.push(...parts.reverse());
    }
    const size = (one) => (this.isFull(one) ? 0 : one[2] / one[1]);
    return found.sort((a, b) => a.axis[1] - b.axis[1] || size(a.axis) - size(b.axis));
  }

  isFull([name, pre, end]) {
    return pre === 1 && end === this.program.axisSize.get(name);
  }

  axisText([name, pre, end]) {
    const known = this.program.axes.find((axis) => axis[0] === name && axis[1] === pre && axis[2] === end);
    return known ? known[3] : `"${name}":(${pre})${end / pre}`;
  }

  axesText(axes) {
    return axes.map((axis) => this.program.axes[axis][3]).join(", ");
  }

  /* The dimensions of a value: final axes, chains, and reasons. */
  dims(value) {
    const program = this.program;
    const tensor = program.tensor(value);
    const holder = program.values.holder[value];
    if (!tensor || holder < 0) return [];
    const final = program.shardings[tensor.sharding];
    const own = program.found.has(value) ? program.shardings[program.found.get(value)] : final;
    return tensor.shape.map((size, dim) => {
      const axes = own.dims[dim] || [];
      const whole = axes.length ? [] : this.reasons(holder, dim);
      const dropped = this.dropped.get(`${value},${dim}`);
      return {
        dim, size, axes: final.dims[dim] || [], whole,
        chains: axes.flatMap((axis) => this.chains(holder, dim, program.axes[axis])),
        dropped: dropped ? program.texts[dropped[0]] : null,
      };
    });
  }

  /* The reasons of a dimension: a template with its numbers each. */
  reasons(holder, dim) {
    const numbers = this.whole.get(`${holder},${dim}`) || [];
    const found = [];
    for (let at = 0; at < numbers.length;) {
      const count = this.program.texts[numbers[at]].split(MARK).length - 1;
      found.push(numbers.slice(at, at + 1 + count));
      at += 1 + count;
    }
    return found;
  }

  shardingText(value) {
    const tensor = this.program.tensor(value);
    const rank = tensor ? tensor.shape.length : 0;
    const sharding = this.program.sharding(value) || { dims: [], unreduced: [] };
    if (tensor && tensor.sharding && sharding.dims.length !== rank) return "on one device";
    const dims = Array.from({ length: rank }, (_, dim) => `{${this.axesText(sharding.dims[dim] || [])}}`);
    const unreduced = sharding.unreduced.length ? ` unreduced ${this.axesText(sharding.unreduced)}` : "";
    return `[${dims.join(", ")}]${unreduced}`;
  }
}

function keyed(rows) {
  return new Map(rows.map(([value, dim, ...rest]) => [`${value},${dim}`, rest]));
}

function* linked(links) {
  for (let at = links; at; at = at.next) yield at.move;
}

/* The common part of two parts of axes, each name, begin and end; null if there is none or they cannot coexist. */
function overlap(a, b) {
  if (a[0] !== b[0]) return null;
  const [low, high] = a[1] <= b[1] ? [a[1], b[1]] : [b[1], a[1]];
  const [lowEnd, highEnd] = a[2] <= b[2] ? [a[2], b[2]] : [b[2], a[2]];
  if (lowEnd <= high) return null;
  if (lowEnd % high || high % low || highEnd % lowEnd) return null;
  return [a[0], high, lowEnd];
}

/* A sentence as pieces: texts, and what it names, each with the number of an op or a value. */
function pieces(program, template, numbers, roles = {}) {
  const [head, ...rest] = program.texts[template].split(MARK);
  let next = 0;
  const found = [{ text: head }];
  for (const part of rest) {
    const kind = part[0];
    if (kind === "v") found.push({ value: numbers[next++] });
    else if (kind === "o") found.push({ op: numbers[next++] });
    else if (kind === "p") found.push({ op: roles.op });
    else found.push({ value: kind === "s" ? roles.source : roles.target });
    found.push({ text: part.slice(1) });
  }
  return found;
}

function plain(program, found) {
  return found.map((one) => one.text ?? ("op" in one ? program.opText(one.op) : program.valueName(one.value))).join("");
}

function movePieces(program, move, isFirst) {
  return pieces(program, isFirst ? move.first : move.rest, [], move);
}

/* The explanation as `pyshardy explain` prints it. */
function explanationText(program, value) {
  const stories = program.stories;
  const tensor = program.tensor(value);
  const mesh = (program.sharding(value) || {}).mesh;
  const lines = [`${program.valueName(value)}${program.returnedText(value)}, shape [${tensor ? tensor.shape.join(", ") : ""}]: ${stories.shardingText(value)}${mesh ? ` on mesh ${mesh}` : ""}`];
  for (const one of stories.dims(value)) {
    const head = `  dimension ${one.dim} (size ${one.size}): `;
    for (const chain of one.chains) lines.push(...chainLines(program, head, chain));
    if (one.dropped) lines.push(head + one.dropped);
    for (const [template, ...numbers] of one.whole.slice(0, 1)) {
      lines.push(`${head}whole, ${plain(program, pieces(program, template, numbers))}`);
    }
  }
  if (!tensor || !tensor.shape.length) lines.push("  a scalar, which every device has");
  return lines.join("\n");
}

function chainLines(program, head, chain) {
  const [template, ...numbers] = chain.given.sentence;
  const origin = plain(program, pieces(program, template, numbers));
  const axis = program.stories.axisText(chain.axis);
  const count = chain.moves.length;
  if (!count) return [`${head}${axis}, given ${chain.given.isOwn ? "by its own annotation" : origin}`];
  const lines = [`${head}${axis}, given ${origin}, came in ${count === 1 ? "1 step" : `${count} steps`}:`];
  const leftOut = count <= 7 ? 0 : count - 6;
  chain.moves.forEach((move, at) => {
    if (leftOut && at >= 3 && at < 3 + leftOut) {
      if (at === 3) lines.push(`    … ${leftOut} more steps like these …`);
      return;
    }
    lines.push(`    ${at + 1}. ${plain(program, movePieces(program, move, at === 0))}`);
  });
  return lines;
}
