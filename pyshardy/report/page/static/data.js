/* A result: its tables, and what follows from them. */

class Program {
  constructor(data, number) {
    Object.assign(this, data);
    this.number = number;
    this.opCount = data.ops.kind.length;
    this.valueCount = data.values.tensor.length;
    [this.operandStarts, this.operandList] = starts(data.ops.operands);
    [this.resultStarts, this.resultList] = starts(data.ops.results);
    this.hidden = new Uint8Array(this.opCount);
    for (const op of data.ops.hidden) this.hidden[op] = 1;
    this.portNames = new Map(data.values.names);
    this.returned = new Map(data.values.returned);
    this.found = new Map(data.values.found);
    this.meshAxes = [...new Set(data.overview.meshes.flatMap((mesh) => mesh.axes.map((axis) => axis.name)))];
    this.axisSize = new Map(data.overview.meshes.flatMap((mesh) => mesh.axes.map((axis) => [axis.name, axis.size])));
    this.colours = data.axes.map((axis) => this.colour(axis[0]));
    this.indexUsers();
    this.indexConflicts();
    this.indexCollectives();
    this.stories = new Explainer(this, data.stories);
  }

  colour(name) {
    return Math.max(0, this.meshAxes.indexOf(name)) % 8;
  }

  operands(op) {
    return this.operandList.slice(this.operandStarts[op], this.operandStarts[op + 1]);
  }

  results(op) {
    return this.resultList.slice(this.resultStarts[op], this.resultStarts[op + 1]);
  }

  /* Per value the ops that use it, as starts and numbers. */
  indexUsers() {
    const counts = new Uint32Array(this.valueCount + 1);
    for (const value of this.operandList) counts[value + 1] += 1;
    for (let value = 0; value < this.valueCount; value += 1) counts[value + 1] += counts[value];
    this.userStarts = counts.slice();
    this.userList = new Uint32Array(this.operandList.length);
    const next = counts.slice();
    for (let op = 0; op < this.opCount; op += 1) {
      for (const value of this.operands(op)) this.userList[next[value]++] = op;
    }
  }

  indexConflicts() {
    this.reshards = new Map();
    this.conflicts.forEach((row, number) => {
      if (!this.reshards.has(row[0])) this.reshards.set(row[0], []);
      this.reshards.get(row[0]).push({ number, tensor: row[1], value: row[2], bytes: row[3] });
    });
  }

  indexCollectives() {
    this.collectivesOf = new Map();
    this.collectives.forEach((one, number) => one.ops.forEach((op) => {
      if (!this.collectivesOf.has(op)) this.collectivesOf.set(op, []);
      this.collectivesOf.get(op).push(number);
    }));
  }

  isEdge(op) {
    return this.opKind(op).endsWith("data_flow_edge");
  }

  /* The value that a value stands for: loops and calls hand values on through edges. */
  source(value) {
    const owner = this.values.owner[value];
    return owner >= 0 && this.isEdge(owner) && this.results(owner).includes(value) ? this.source(this.operands(owner)[0]) : value;
  }

  /* The op that computes a value; -1 for inputs and for arguments of loops. */
  maker(value) {
    const source = this.source(value);
    const owner = this.values.owner[source];
    return owner >= 0 && this.results(owner).includes(source) ? owner : -1;
  }

  /* The ops that use a value, also through edges. */
  readers(value) {
    return [...new Set(this.users(value).flatMap((op) => (this.isEdge(op) ? this.results(op).flatMap((one) => this.readers(one)) : [op])))];
  }

  users(value) {
    return [...new Set(this.userList.slice(this.userStarts[value], this.userStarts[value + 1]))];
  }

  valueName(value) {
    const number = this.values.name[value];
    return number === undefined ? "a value" : this.texts[number];
  }

  /* What a value is returned as: ", returned as `result`"; nothing for one that is not. */
  returnedText(value) {
    const names = (this.returned.get(value) || []).map((output) => `\`${this.texts[this.portNames.get(output)]}\``);
    return names.length ? `, returned as ${names.join(" and ")}` : "";
  }

  /* Of values of one name, which it is: " 3 of 24"; nothing for a name that is there once. */
  turn(value) {
    if (!this.turns) {
      this.turns = new Map();
      this.values.name.forEach((name, at) => {
        if (!this.turns.has(name)) this.turns.set(name, []);
        this.turns.get(name).push(at);
      });
    }
    const alike = this.turns.get(this.values.name[value]);
    return alike.length > 1 ? ` (${alike.indexOf(value) + 1} of ${alike.length})` : "";
  }

  opText(op) {
    const number = this.ops.text[op];
    return number === undefined ? "the return" : this.texts[number];
  }

  opKind(op) {
    return this.texts[this.ops.kind[op]];
  }

  opShort(op) {
    return this.texts[this.ops.short[op]];
  }

  place(op) {
    const file = this.texts[this.ops.file[op]];
    return file ? `${file}:${this.ops.line[op]}` : "";
  }

  tensor(value) {
    return this.tensors[this.values.tensor[value]] || null;
  }

  sharding(value) {
    const tensor = this.tensor(value);
    return tensor ? this.shardings[tensor.sharding] : null;
  }

  /* The mesh axes that split a value. */
  axesOf(value) {
    const sharding = this.sharding(value);
    return sharding ? [...new Set(sharding.dims.flat().map((axis) => this.axes[axis][0]))] : [];
  }

  typeText(value, isLocal = false) {
    const tensor = this.tensor(value);
    return tensor ? typeText(tensor.dtype, isLocal ? tensor.local : tensor.shape) : "no tensor";
  }
}

function typeText(dtype, shape) {
  return `${dtype}[${shape.map((size) => (size < 0 ? "?" : size)).join(", ")}]`;
}

function starts([lengths, numbers]) {
  const found = new Uint32Array(lengths.length + 1);
  lengths.forEach((length, at) => { found[at + 1] = found[at] + length; });
  return [found, numbers];
}

const LAYER = /(?<=\[)\d+(?=\])|(?<=[A-Za-z]_)\d+(?![A-Za-z0-9])/g;

/* A text that is the same for all members of a list, and for all layers that are numbered. */
function general(text) {
  return text.replace(LAYER, "*");
}

/* One text for several that are the same in general: only numbers that differ become stars. */
function common(texts) {
  const numbers = texts.map((text) => text.match(LAYER) || []);
  let at = -1;
  return texts[0].replace(LAYER, (number) => {
    at += 1;
    return numbers.every((one) => one[at] === number) ? number : "*";
  });
}
