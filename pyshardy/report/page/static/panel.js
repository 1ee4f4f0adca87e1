/* All about one value: its blocks on the devices, why, its op, its uses. */

function panelOf(program, value) {
  const tensor = program.tensor(value);
  const owner = program.values.owner[value];
  const isResult = owner >= 0 && program.results(owner).includes(value);
  const name = program.valueName(value);
  return [
    el("h2", { id: "selected", tabindex: "-1" }, rich(name[0].toUpperCase() === name[0] ? name : name.replace(/^the result of /, "")), el("span", { class: "quiet" }, rich(program.returnedText(value)), program.turn(value))),
    el("p", { class: "types" }, el("code", {}, program.typeText(value)), tensor && tensor.bytes ? [" · ", bytes(tensor.bytes[0])] : "",
      tensor && tensor.sharding ? [el("br"), "on one device ", el("code", {}, program.typeText(value, true)), tensor.bytes ? [" · ", el("b", {}, bytes(tensor.bytes[1]))] : ""] : ""),
    blocksPart(program, tensor),
    whyPart(program, value),
    isResult ? opPart(program, owner) : null,
    usesPart(program, value),
  ];
}

function blocksPart(program, tensor) {
  if (!tensor || !tensor.shape.length) return null;
  const made = picture(tensor);
  if (!made) return el("p", { class: "quiet" }, tensor.sharding ? blocksText(program, tensor) : "Every device has all of it.");
  const dims = tensor.picture.dims;
  return el("figure", {}, made, el("figcaption", { class: "quiet" },
    dims ? `dimensions ${dims.join(", ")}; the others are whole. ` : "", "The number in a block is the device that holds it."));
}

function whyPart(program, value) {
  const dims = program.stories.dims(value);
  const tensor = program.tensor(value);
  if (!dims.length) return el("p", { class: "quiet" }, tensor && !tensor.shape.length ? "A scalar, which every device has." : "Nothing is known of its dimensions.");
  return el("section", { class: "why" }, el("h3", {}, "Why"), dims.map((one) => dimPart(program, one)));
}

function dimPart(program, one) {
  const chips = one.axes.length ? one.axes.map((axis) => axisChip(program, program.axes[axis][0], shortAxis(program.axes[axis]))) : el("span", { class: "quiet" }, "whole");
  const [first, ...others] = one.whole;
  const said = (reason) => sentence(program, pieces(program, reason[0], reason.slice(1)));
  return el("div", { class: "dim" },
    el("h4", {}, `dimension ${one.dim}`, el("span", { class: "quiet" }, ` of ${one.size} `), chips),
    one.chains.map((chain) => chainPart(program, chain)),
    one.dropped ? el("p", {}, rich(one.dropped)) : null,
    first ? el("p", {}, "Whole, ", said(first), ".") : null,
    others.length ? el("details", {}, el("summary", {}, counted(others.length, "other reason")), el("ul", {}, others.map((reason) => el("li", {}, said(reason))))) : null);
}

function chainPart(program, chain) {
  const [template, ...numbers] = chain.given.sentence;
  const origin = sentence(program, pieces(program, template, numbers));
  const axis = program.stories.axisText(chain.axis);
  const head = el("p", {}, axisChip(program, chain.axis[0], axis.replace(/^"([^"]*)"$/, "$1")), " given ",
    chain.moves.length || !chain.given.isOwn ? origin : "by its own annotation",
    chain.moves.length ? `, came in ${counted(chain.moves.length, "step")}:` : ".");
  if (!chain.moves.length) return head;
  return el("div", {}, head, listOf(chain.moves.map((move, at) => [move, at]), ([move, at]) =>
    el("li", {}, sentence(program, movePieces(program, move, at === 0))), "ol", {}, 8));
}

function opPart(program, op) {
  const operands = program.operands(op);
  const reshards = program.reshards.get(op) || [];
  const sends = program.collectivesOf.get(op) || [];
  const results = program.results(op);
  return el("section", {}, el("h3", {}, "Computed by"),
    el("p", {}, el("code", {}, program.opKind(op)), program.place(op) ? [" at ", el("span", { class: "place" }, program.place(op))] : ""),
    program.texts[program.ops.scope[op]] ? el("p", { class: "quiet place" }, program.texts[program.ops.scope[op]]) : null,
    results.length > 1 ? [el("h4", {}, "Its results"), listOf(results, (value) => el("li", {}, valueLink(program, value), " ", shardingChips(program, program.tensor(value))), "ul", { class: "found" }, 6), el("h4", {}, "Its operands")] : null,
    operands.length ? listOf(operands, (value, at) => el("li", {}, valueLink(program, value), " ", shardingChips(program, program.tensor(value)),
      reshards.filter((one) => one.tensor === at).map((one) => el("span", { class: "tag sends" }, `reshard, ${bytes(one.bytes)}`))), "ul", { class: "found" }, 12) : null,
    sends.map((at) => el("p", { class: "hint sends" }, rich(program.collectives[at].text.split(": ")[0]), program.collectives[at].hint ? [" Hint: ", rich(program.collectives[at].hint)] : "")));
}

function usesPart(program, value) {
  const users = program.readers(value).filter((op) => !program.hidden[op] || program.results(op).length);
  if (!users.length) return null;
  return el("section", {}, el("h3", {}, `Used by ${counted(users.length, "op")}`), listOf(users, (op) => el("li", {}, opLink(program, op), " ",
    program.results(op).length ? shardingChips(program, program.tensor(program.results(op)[0])) : "",
    (program.reshards.get(op) || []).filter((one) => program.operands(op)[one.tensor] === value).map((one) => el("span", { class: "tag sends" }, `reshard, ${bytes(one.bytes)}`))), "ul", { class: "found" }, 12));
}

/* All about a part of the program: what is in it, and how it hangs together. */
function regionPanel(program, name, ops) {
  const values = ops.flatMap((op) => program.results(op));
  const counts = new Map();
  for (const value of values) for (const axis of program.axesOf(value)) counts.set(axis, (counts.get(axis) || 0) + 1);
  const sends = [...new Set(ops.flatMap((op) => program.collectivesOf.get(op) || []))].sort((a, b) => a - b);
  const reshards = ops.reduce((sum, op) => sum + (program.reshards.get(op) || []).length, 0);
  return [el("h2", { id: "selected", tabindex: "-1" }, name),
    el("p", {}, counted(ops.length, "op"), reshards ? `, ${counted(reshards, "reshard")}` : ""),
    el("p", {}, [...counts].map(([axis, count]) => [axisChip(program, axis, `${axis} ${percent(count, values.length)}`), " "])),
    sends.length ? el("section", {}, el("h3", {}, "Collectives"), listOf(sends.map((at) => program.collectives[at]), (one) => collectiveItem(program, one), "ol", { class: "stories" }, 5)) : null];
}
