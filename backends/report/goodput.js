// Goodput by size: curves that differ in colour, dashes and marks, the bound, and the crossovers.
const dash = (number) => (number + Math.floor(number / 8)) % 4;  // with the colour, the first 32 curves differ

class GoodputPicture {
  constructor(model, stage) {
    this.model = model; this.bus = false; this.relative = false;
    this.holder = html("div", {});
    this.said = html("p", { class: "said", role: "status", "aria-live": "polite" });
    const row = html("div", { class: "controls" });
    if (model.goodput.bus) row.append(html("label", {}, html("input", { type: "checkbox", onchange: (event) => { this.bus = event.target.checked; this.draw(); } }), "bus bandwidth (busbw)"));
    row.append(html("label", {}, html("input", { type: "checkbox", onchange: (event) => { this.relative = event.target.checked; this.draw(); } }), "as a part of the bound"));
    this.size = slider("size ", model.goodput.sizes.length - 1, (at) => this.tell(at));
    row.append(this.size.label);
    this.legend = html("ul", { class: "legend" });
    stage.append(row, this.holder, this.legend, this.said, this.table());
    this.draw();
    this.tell(Math.max(model.goodput.sizes.indexOf(model.own || 1 << 20), 0));
  }
  factor() { return this.bus ? this.model.goodput.bus : 1; }
  draw() {
    const g = this.model.goodput, wide = 1000, tall = 420, left = 70, bottom = 372, top = 18, right = 800;
    const sizes = g.sizes, low = Math.log2(sizes[0]), span = Math.log2(sizes[sizes.length - 1]) - low || 1;
    const shown = (rates) => rates.map((rate, at) => (this.relative && rate !== null && g.bound[at] ? rate / g.bound[at] * 100e9 : rate));
    const most = this.relative ? 104e9 : Math.max(...g.bound.filter(Number.isFinite), ...g.curves.flatMap((one) => one.rate.filter(Number.isFinite)), 0) * this.factor() * 1.06 || 1;
    this.x = (size) => left + (Math.log2(size) - low) / span * (right - left);
    this.y = (rate) => bottom - rate * (this.relative ? 1 : this.factor()) / most * (bottom - top);
    const what = this.relative ? "part of the bound" : this.bus ? "bus bandwidth" : "goodput";
    const image = picture(wide, tall, `${what} by size: ${g.curves.map((one) => one.name).join(", ")}, and the bound`);
    this.axes(image, most, { left, right, top, bottom }, what);
    const ended = [];  // where the names of crossovers end, line by line: a name that would overlap goes to the next line
    for (const [size, curve] of g.crossings) {
      const x = this.x(size), name = `${g.curves[curve].name} from ${showSize(size)}`.slice(0, 40);
      const line = ended.findIndex((end) => end < x), at = line < 0 ? ended.length : line;
      ended[at] = x + 12 + 6.5 * name.length;
      image.append(svg("path", { class: "axis d2", d: `M${x} ${top}V${bottom}` }), svg("text", { x: x + 4, y: top + 10 + 14 * at, class: "small halo" }, name));
    }
    image.append(this.curve(shown(g.bound), "least", null));
    const ends = [[this.last(shown(g.bound)), "bound", "least"]];
    g.curves.forEach((one, number) => {
      const kind = `c${number % 8}`, rates = shown(one.rate);
      image.append(this.curve(rates, one.chosen ? kind : `${kind} other`, number));
      ends.push([this.last(rates), one.name, kind]);
    });
    this.names(image, ends, right);
    this.cursor = svg("path", { class: "axis", d: "" });
    image.append(this.cursor);
    image.addEventListener("pointermove", (event) => {
      const box = image.getBoundingClientRect(), x = (event.clientX - box.left) * wide / box.width;
      let best = 0;
      sizes.forEach((size, at) => { if (Math.abs(this.x(size) - x) < Math.abs(this.x(sizes[best]) - x)) best = at; });
      this.tell(best);
    });
    this.bottom = bottom; this.top = top;
    this.holder.replaceChildren(image);
    this.showLegend(g);
  }
  axes(image, most, { left, right, top, bottom }, what) {
    image.append(svg("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` }));
    const raw = most / 6, power = 10 ** Math.floor(Math.log10(raw)), unit = [1, 2, 5, 10].find((one) => one * power >= raw) * power;
    for (let value = 0; value <= most; value += unit) {
      const y = bottom - value / most * (bottom - top);
      image.append(svg("path", { class: "grid", d: `M${left} ${y}H${right}` }), svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, short(value / 1e9)));
    }
    image.append(svg("text", { x: left - 6, y: top - 5, "text-anchor": "end" }, this.relative ? "%" : "GB/s"), svg("text", { x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, `size of the whole vector (${what})`));
    let free = 0;
    for (const size of this.model.goodput.sizes) {
      if (Math.log2(size) % 2 || this.x(size) < free) continue;
      image.append(svg("text", { x: this.x(size), y: bottom + 18, "text-anchor": "middle" }, showSize(size)));
      free = this.x(size) + 54;
    }
  }
  curve(rates, kind, number) {
    const points = rates.flatMap((rate, at) => (rate === null ? [] : [[this.x(this.model.goodput.sizes[at]), this.y(rate)]]));
    const line = svg("path", { class: `line${number === null ? "" : ` d${dash(number)}`}`, d: points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("") });
    const marks = number === null ? [] : points.filter((_, at) => at % 2 === number % 2).map(([x, y]) => this.mark(x, y, number));
    return svg("g", { class: kind }, line, ...marks);
  }
  mark(x, y, number) {
    const kind = number % 4;
    if (kind === 0) return svg("circle", { class: "mark", cx: x, cy: y, r: 3 });
    if (kind === 1) return svg("rect", { class: "mark", x: x - 3, y: y - 3, width: 6, height: 6 });
    const d = kind === 2 ? `M${x} ${y - 4}l4 7h-8z` : `M${x} ${y - 4}l4 4l-4 4l-4 -4z`;
    return svg("path", { class: "mark", d });
  }
  last(rates) { return this.y(rates[rates.length - 1] || 0); }
  names(image, ends, right) {  // names that would overlap move down; what does not fit is in the legend only
    let free = 0;
    for (const [y, name, kind] of ends.sort((a, b) => a[0] - b[0] || (a[1] === "bound" ? -1 : 1))) {
      const at = Math.max(y + 4, free);
      if (at > 374) continue;
      image.append(svg("g", { class: kind }, svg("text", { class: "tag", x: right + 8, y: at }, name.slice(0, 24))));
      free = at + 13;
    }
  }
  showLegend(g) {
    const rows = g.curves.map((one, number) => html("li", {}, svg("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" },
      svg("g", { class: `c${number % 8}` }, svg("path", { class: `line d${dash(number)}`, d: "M2 7H32" }), this.mark(17, 7, number))), one.chosen ? `${one.text} (chosen)` : one.text));
    this.legend.replaceChildren(...rows);
  }
  tell(at) {
    const g = this.model.goodput, size = g.sizes[at], factor = this.factor();
    this.size.input.value = at;
    this.size.input.setAttribute("aria-valuetext", showSize(size));
    const found = g.curves.map((one) => [one.rate[at] || 0, one.name]).sort((a, b) => b[0] - a[0]).slice(0, 4);
    this.said.textContent = `${showSize(size)}: bound ${showRate((g.bound[at] || 0) * factor)}; ${found.map(([rate, name]) => `${name} ${showRate(rate * factor)}`).join(", ")}`;
    this.cursor.setAttribute("d", `M${this.x(size)} ${this.top}V${this.bottom}`);
  }
  table() {
    const g = this.model.goodput, head = ["size", "bound", ...g.curves.map((one) => one.name)];
    const body = g.sizes.map((size, at) => html("tr", {}, html("th", { scope: "row" }, showSize(size)), ...[g.bound, ...g.curves.map((one) => one.rate)].map((rates) => html("td", { class: "n" }, rates[at] === null ? "" : showRate(rates[at])))));
    const table = html("table", {}, html("thead", {}, html("tr", {}, ...head.map((text) => html("th", { scope: "col" }, text)))), html("tbody", {}, ...body));
    const skipped = g.skipped.map(([name, reason]) => html("li", {}, `${name}: ${reason}`));
    return html("details", {}, html("summary", {}, "The curves as a table"), html("div", { class: "wide" }, table), skipped.length ? html("p", {}, "Not compared:") : null, html("ul", {}, ...skipped));
  }
}
