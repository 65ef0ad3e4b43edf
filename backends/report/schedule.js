// The schedule: ranks by time. Many ranks or steps are drawn in groups; a click on a group shows what is in it.
const MOST_ROWS = 64, MOST_COLUMNS = 160, MOST_LISTED = 200;

class SchedulePicture {
  constructor(model, state, stage) {
    this.model = model; this.state = state;
    this.rows = [0, model.ranks]; this.columns = [0, model.steps];
    this.size = model.own || 1 << 20;
    this.said = html("p", { class: "said", role: "status", "aria-live": "polite" });
    this.holder = html("div", {});
    this.transfers = html("ul", { class: "list", "aria-label": "transfers of the chosen rank in the chosen step" });
    this.path = html("ol", { class: "path-list", tabindex: "0", "aria-label": "every transfer of the data that are followed" });
    this.journey = html("details", { hidden: true }, html("summary", {}, "Every transfer of these data"), this.path);
    stage.append(this.controls(), this.holder, this.said, this.transfers, this.journey);
    this.build();
    state.follow((values, changes) => this.draw(values, changes || {}));
  }

  controls() {
    const { model, state } = this, row = html("div", { class: "controls" });
    const ranks = Array.from({ length: model.ranks }, (_, rank) => [rank, model.nodeName(rank)]);
    this.rank = choice("rank ", ranks, state.rank, (rank) => state.set({ rank: Number(rank) }));
    this.step = slider("step ", Math.max(model.steps - 1, 0), (step) => state.set({ step }));
    this.stepText = html("output", {});
    const sizes = [...new Set([...this.model.goodput.sizes])].map((size) => [size, showSize(size)]);
    const size = choice("time axis at ", sizes, this.size, (value) => { this.size = Number(value); this.build(); this.draw(state, {}); });
    this.back = button("all ranks and steps", () => this.zoom([0, model.ranks], [0, model.steps]), { hidden: true });
    this.stop = button("stop following", () => state.set({ journey: null }), { hidden: true });
    const shards = model.shards().slice(0, MOST_LISTED).map((shard) => [shard, model.shardName(shard)]);
    this.shard = choice("follow ", [["", "nothing"], ...shards], "", (shard) => state.set({ journey: shard === "" ? null : model.wholeShard(Number(shard)) }));
    row.append(this.rank.label, this.step.label, this.stepText, ...(shards.length ? [this.shard.label] : []), size.label, this.back, this.stop);
    return row;
  }
  zoom(rows, columns) {
    this.rows = rows; this.columns = columns;
    this.back.hidden = rows[1] - rows[0] === this.model.ranks && columns[1] - columns[0] === this.model.steps;
    this.build();
    this.draw(this.state, {});
  }

  // ---- the picture
  build() {
    const { model } = this, count = this.rows[1] - this.rows[0], steps = this.columns[1] - this.columns[0];
    this.perRow = Math.ceil(count / MOST_ROWS) || 1;
    this.perColumn = Math.ceil(steps / MOST_COLUMNS) || 1;
    const rows = Math.ceil(count / this.perRow);
    this.left = 96; this.width = 1000;
    this.height = Math.min(Math.max(560 / Math.max(rows, 1), 9), 26);
    this.edges = [0];
    for (let at = this.columns[0]; at < this.columns[1]; at += this.perColumn) {
      let seconds = 0;
      for (let step = at; step < Math.min(at + this.perColumn, this.columns[1]); step++) seconds += model.seconds(step, this.size);
      this.edges.push(this.edges[this.edges.length - 1] + seconds);
    }
    const total = this.edges[this.edges.length - 1] || 1, wide = this.width - this.left - 16;
    this.edges = this.edges.map((edge) => this.left + edge / total * wide);
    const tall = rows * this.height + 34;
    this.picture = picture(this.width, tall, `ranks by time: ${count} ranks, ${steps} steps, ${showTime(total)} at ${showSize(this.size)}`);
    const sends = [], receives = [], lines = [];
    for (let row = 0; row < rows; row++) this.drawRow(row, sends, receives, lines);
    this.picture.append(this.stripes(), svg("path", { class: "grid", d: lines.join("") }), svg("path", { class: "bar", d: sends.join("") }),
      svg("path", { fill: `url(#${this.pattern})`, d: receives.join("") }));
    this.axis(rows, total);
    this.cell = svg("rect", { class: "cell", width: 0, height: 0 });
    this.picture.append(this.cell);
    this.picture.addEventListener("click", (event) => this.pick(event));
    this.holder.replaceChildren(this.picture);
  }
  stripes() {
    this.pattern = `stripes-${this.model.number}`;
    return svg("defs", {}, svg("pattern", { id: this.pattern, width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("rect", { class: "turn", width: 2.4, height: 4 })));
  }
  drawRow(row, sends, receives, lines) {
    const { model } = this, y = 6 + row * this.height, half = (this.height - 2) / 2;
    const first = this.rows[0] + row * this.perRow, last = Math.min(first + this.perRow, this.rows[1]);
    lines.push(`M${this.left} ${(y + this.height - 1).toFixed(1)}H${this.width - 16}`);
    if (this.height >= 9) {
      const name = last - first > 1 ? `${model.nodeName(first)} ..` : model.nodeName(first);
      this.picture.append(svg("text", { x: this.left - 6, y: y + this.height / 2 + 3, "text-anchor": "end", class: this.height < 12 ? "small" : null }, name.slice(0, 14)));
    }
    for (let column = 0; column + 1 < this.edges.length; column++) {
      const x = this.edges[column], room = Math.max(this.edges[column + 1] - x - 0.6, 0.3);
      const [out, into] = this.parts(first, last, column);
      if (out) sends.push(`M${x.toFixed(1)} ${y.toFixed(1)}h${(room * out).toFixed(1)}v${half.toFixed(1)}h-${(room * out).toFixed(1)}z`);
      if (into) receives.push(`M${x.toFixed(1)} ${(y + half).toFixed(1)}h${(room * into).toFixed(1)}v${half.toFixed(1)}h-${(room * into).toFixed(1)}z`);
    }
  }
  // The mean part of the time in which a group of ranks sends, and receives, over a group of steps.
  parts(first, last, column) {
    const { model } = this;
    if (!model.drawn || !model.flow.each) return [0, 0];
    let out = 0, into = 0, count = 0;
    const from = this.columns[0] + column * this.perColumn, to = Math.min(from + this.perColumn, this.columns[1]);
    for (let step = from; step < to; step++) for (let rank = first; rank < last; rank++) {
      out += model.share(rank, step, model.out); into += model.share(rank, step, model.into); count++;
    }
    return count ? [out / count, into / count] : [0, 0];
  }
  axis(rows, total) {
    const y = 10 + rows * this.height;
    this.picture.append(svg("path", { class: "axis", d: `M${this.left} ${y - 2}H${this.width - 16}` }));
    let free = 0;
    for (let column = 0; column + 1 < this.edges.length; column++) {
      if (this.edges[column] < free) continue;
      this.picture.append(svg("text", { x: this.edges[column], y: y + 12, class: "small" }, String(this.columns[0] + column * this.perColumn)));
      free = this.edges[column] + 34;
    }
    this.picture.append(svg("text", { x: this.left - 6, y: y + 12, "text-anchor": "end", class: "small" }, "step"),
      svg("text", { x: this.width - 16, y: y + 22, "text-anchor": "end", class: "small quiet" }, showTime(total)));
  }

  // ---- choosing
  pick(event) {
    const box = this.picture.getBoundingClientRect(), scale = this.width / box.width;
    const x = (event.clientX - box.left) * scale, row = Math.floor(((event.clientY - box.top) * scale - 6) / this.height);
    const column = this.edges.findIndex((edge, at) => at + 1 < this.edges.length && x >= edge && x < this.edges[at + 1]);
    const first = this.rows[0] + row * this.perRow;
    if (column < 0 || row < 0 || first >= this.rows[1]) return;
    const from = this.columns[0] + column * this.perColumn;
    if (this.perRow > 1 || this.perColumn > 1)
      this.zoom([first, Math.min(first + this.perRow, this.rows[1])], this.perColumn > 1 ? [from, Math.min(from + this.perColumn, this.columns[1])] : this.columns);
    this.state.set({ rank: first, step: from });
  }
  draw(values, changes) {
    const { model } = this, step = Math.max(values.step, 0), rank = values.rank;
    this.rank.select.value = rank;
    this.step.input.value = step;
    this.stepText.textContent = `${step} of ${model.steps}`;
    const row = Math.floor((rank - this.rows[0]) / this.perRow), column = Math.floor((step - this.columns[0]) / this.perColumn);
    const inside = rank >= this.rows[0] && rank < this.rows[1] && column >= 0 && column + 1 < this.edges.length;
    this.cell.setAttribute("visibility", inside ? "visible" : "hidden");
    if (inside) fill(this.cell, { x: this.edges[column], y: 5 + row * this.height, width: Math.max(this.edges[column + 1] - this.edges[column], 2), height: this.height }, []);
    this.list(rank, step);
    if ("journey" in changes) this.tell(values.journey);
  }
  list(rank, step) {
    const { model, state } = this, rows = model.steps ? model.rowsOf(rank, step) : [];
    const sent = this.amount(rank, step, model.out), got = this.amount(rank, step, model.into);
    const which = model.transfers ? `${rows.length} transfers listed (the page has ${model.transfers.about})` : "the page does not list the transfers";
    this.said.textContent = `Rank ${model.nodeName(rank)}, step ${step}: sends ${sent}, receives ${got}; ${which}.`;
    this.transfers.replaceChildren(...rows.slice(0, MOST_LISTED).map((row) =>
      html("li", {}, button(model.rowText(row), () => state.set({ journey: { row, rows: model.journey(row), title: model.part(row) } })))));
  }
  amount(rank, step, links) {
    const { model } = this;
    if (!model.drawn || !model.flow.each || !model.steps) return "an amount that the page does not hold";
    return showShare(links[rank].reduce((all, link) => all + model.load(link, step), 0));
  }
  tell(journey) {
    this.stop.hidden = !journey;
    if (!journey || journey.row >= 0) this.shard.select.value = "";
    this.journey.hidden = !journey;
    this.journey.open = Boolean(journey);
    const rows = journey ? journey.rows.slice(0, MOST_LISTED) : [];
    this.path.replaceChildren(...rows.map((row) => html("li", {}, `step ${this.model.transfers.step[row]}: ${this.model.rowText(row)}`)));
    if (journey && journey.rows.length > rows.length) this.path.append(html("li", {}, `and ${journey.rows.length - rows.length} more`));
  }
}
