// The threadblocks of the chosen rank: instructions in the step in which they can run, with what they wait for.
const BUFFERS = ["input", "output", "scratch"];

class ThreadblocksPicture {
  constructor(model, state, stage) {
    this.model = model; this.state = state;
    this.said = html("p", { class: "said", role: "status", "aria-live": "polite" });
    this.holder = html("div", {});
    this.list = html("ol", {});
    const list = html("details", {}, html("summary", {}, "The instructions as text"), this.list);
    stage.append(this.holder, this.said, list);
    state.follow((values, changes) => { if (!changes || "rank" in changes) this.draw(values.rank); });
  }
  draw(rank) {
    const { model } = this, p = model.program;
    if (rank >= p.ranks) {
      this.holder.replaceChildren();
      this.list.replaceChildren();
      this.said.textContent = `The page has the threadblocks of the first ${p.ranks} of ${p.of} ranks.`;
      return;
    }
    const blocks = p.rank.flatMap((of, block) => (of === rank ? [block] : []));
    const rows = blocks.flatMap((block) => Array.from({ length: p.start[block + 1] - p.start[block] }, (_, i) => p.start[block] + i));
    const places = this.places(blocks), wide = Math.max(...rows.map((row) => places.get(row)), 0) + 1;
    const cell = Math.min(Math.max(860 / wide, 9), 30), tall = 24;
    const image = picture(1000, blocks.length * tall + 14, `threadblocks of rank ${model.nodeName(rank)}: ${blocks.length} with ${rows.length} instructions`);
    image.setAttribute("viewBox", `0 0 ${Math.max(1000, 134 + wide * cell)} ${blocks.length * tall + 14}`);
    blocks.forEach((block, line) => {
      const y = 8 + line * tall;
      image.append(svg("text", { x: 126, y: y + 14, "text-anchor": "end", class: "small" }, this.blockWords(block, blocks[0])));
      for (let row = p.start[block]; row < p.start[block + 1]; row++) this.drawOne(image, row, 132 + places.get(row) * cell, y, cell, tall);
    });
    this.holder.replaceChildren(image);
    this.said.textContent = `Rank ${model.nodeName(rank)}: ${blocks.length} threadblocks, ${rows.length} instructions, ${p.scratch[rank]} chunks of scratch. Point at an instruction.`;
    this.list.replaceChildren(...rows.slice(0, 300).map((row) => html("li", {}, this.words(row))));
  }
  // Instructions of a threadblock follow each other; none is left of its step.
  places(blocks) {
    const p = this.model.program, found = new Map();
    const busy = new Map();
    for (const block of blocks) for (let row = p.start[block]; row < p.start[block + 1]; row++) busy.set(p.wave[row], Math.max(busy.get(p.wave[row]) || 0, 0));
    const most = new Map();
    for (const block of blocks) {
      const count = new Map();
      for (let row = p.start[block]; row < p.start[block + 1]; row++) count.set(p.wave[row], (count.get(p.wave[row]) || 0) + 1);
      for (const [wave, number] of count) most.set(wave, Math.max(most.get(wave) || 0, number));
    }
    const begin = new Map();
    let at = 0;
    for (const wave of [...busy.keys()].sort((a, b) => a - b)) { begin.set(wave, at); at += most.get(wave); }
    for (const block of blocks) {
      let free = 0;
      for (let row = p.start[block]; row < p.start[block + 1]; row++) { free = Math.max(free, begin.get(p.wave[row])); found.set(row, free++); }
    }
    return found;
  }
  drawOne(image, row, x, y, cell, tall) {
    const [letter, kind] = this.sign(row), waits = this.model.program.dep_start[row + 1] > this.model.program.dep_start[row];
    const mark = svg("rect", { class: `work ${kind}${waits ? " waits" : ""}`, x: x + 1, y: y + 2, width: cell - 2, height: tall - 5, rx: 2 }, svg("title", {}, this.words(row)));
    mark.addEventListener("pointerenter", () => { this.said.textContent = this.words(row); });
    image.append(mark);
    if (cell >= 9) image.append(svg("text", { x: x + cell / 2, y: y + 15, "text-anchor": "middle", "pointer-events": "none", class: kind ? "small on" : "small" }, letter));
  }
  name(row) { return this.model.program.opcodes[this.model.program.opcode[row]]; }
  sign(row) {
    const name = this.name(row);
    if (name === "send") return ["S", "s"];
    if (name === "recv") return ["R", "r"];
    if (name.startsWith("recv")) return [name.includes("reduce") ? "A" : "F", "r"];
    return [name[0].toUpperCase(), ""];
  }
  blockWords(block, first) {
    const p = this.model.program, to = p.send[block] >= 0 ? ` to ${p.send[block]}` : "", from = p.recv[block] >= 0 ? ` from ${p.recv[block]}` : "";
    return `${block - first}:${to || from ? `${to}${from}, ch ${p.channel[block]}` : " local"}`;
  }
  words(row) {
    const p = this.model.program, block = this.blockOf(row);
    const place = (buffer, offset) => `${BUFFERS[buffer]} ${offset}${p.count[row] > 1 ? ` to ${offset + p.count[row] - 1}` : ""}`;
    const name = this.name(row), peers = [];
    if (name.includes("recv")) peers.push(`from ${this.model.nodeName(p.recv[block])}`);
    if (name.includes("send")) peers.push(`to ${this.model.nodeName(p.send[block])}`);
    const deps = p.deps.slice(p.dep_start[row], p.dep_start[row + 1]).map((dep) => { const other = this.blockOf(dep); return `threadblock ${this.numberOf(other)} step ${dep - p.start[other]}`; });
    const waits = deps.length ? `; waits for ${deps.join(", ")}` : "";
    const source = name === "recv" || name === "recv-copy-send" || name === "nop" ? "" : `, reads ${place(p.src_buffer[row], p.src_offset[row])}`;
    const target = name === "send" || name === "recv-reduce-send" || name === "nop" ? "" : `, writes ${place(p.dst_buffer[row], p.dst_offset[row])}`;
    return `threadblock ${this.numberOf(block)} step ${row - p.start[block]}: ${name} ${peers.join(" ")}${source}${target}${waits}`;
  }
  blockOf(row) {
    const start = this.model.program.start;
    let low = 0, high = start.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (start[middle] <= row) low = middle; else high = middle; }
    return low;
  }
  numberOf(block) { return block - this.model.program.rank.indexOf(this.model.program.rank[block]); }
}
