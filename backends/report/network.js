// The network: nodes at their places, links wide and dark by load, the cut, and the data that are followed.
const LEVELS = 5, NAMED = 80;

class NetworkPicture {
  constructor(model, state, stage) {
    this.model = model; this.state = state; this.stage = stage;
    this.visible = this.chosenNodes(0);
    this.said = html("p", { class: "said", role: "status", "aria-live": "polite" });
    this.legend = html("ul", { class: "legend" });
    this.holder = html("div", {});
    stage.append(this.controls(), this.holder, this.legend, this.said, this.linksOfNode());
    this.build();
    state.follow((values, changes) => this.draw(values, changes || {}));
  }

  // ---- what can be set
  controls() {
    const { model, state } = this, row = html("div", { class: "controls" });
    if (model.flow.each) {
      this.step = slider("step ", model.steps, (at) => state.set({ step: at - 1 }));
      this.stepText = html("output", {}, "all steps");
      row.append(button("previous", () => state.set({ step: Math.max(-1, state.step - 1) }), { "aria-label": "previous step" }),
        this.step.label, button("next", () => state.set({ step: Math.min(model.steps - 1, state.step + 1) }), { "aria-label": "next step" }), this.stepText);
    }
    if (model.network.folded) {
      const kinds = model.network.kind;
      const options = model.network.boxes.map((box, at) => [at, kinds[at] === at ? `box ${at}` : `box ${at}, like box ${kinds[at]}`]);
      row.append(choice("show ", options, 0, (at) => { this.visible = this.chosenNodes(Number(at)); this.build(); this.draw(state, {}); }).label);
    }
    if (model.cut) {
      this.cutBox = html("input", { type: "checkbox", onchange: (event) => state.set({ cut: event.target.checked }) });
      row.append(html("label", {}, this.cutBox, "cut of the bound"));
    }
    return row;
  }
  chosenNodes(box) {
    const { model } = this, net = model.network;
    if (!net.folded) return Array.from({ length: model.nodes }, (_, node) => node);
    const found = new Set(net.boxes[box]), owned = new Set(net.boxes.flat());
    for (let more = true; more;) {  // the shared switches above the box
      more = false;
      for (const node of [...found]) for (const link of model.out[node]) {
        const other = net.dst[link];
        if (!owned.has(other) && !found.has(other) && net.y[other] < net.y[node]) { found.add(other); more = true; }
      }
    }
    return [...found].sort((a, b) => a - b);
  }

  // ---- places
  places() {
    const { model } = this, net = model.network, at = new Map();
    if (net.shape === "round") {
      const count = model.nodes, radius = Math.min(Math.max(110, count * 5.2), 420);
      this.unit = this.near = Math.min(2 * radius * Math.sin(Math.PI / Math.max(count, 2)), 90);
      this.width = this.height = 2 * radius + 80;
      for (let node = 0; node < count; node++) {
        const angle = 2 * Math.PI * node / count - Math.PI / 2;
        at.set(node, [this.width / 2 + radius * Math.cos(angle), this.height / 2 + radius * Math.sin(angle)]);
      }
      this.width = Math.max(this.width, 700);
      const shift = (this.width - this.height) / 2;
      for (const place of at.values()) place[0] += shift;
      return at;
    }
    const across_ = this.columns();
    const xs = this.visible.map((node) => across_(node)), ys = this.visible.map((node) => net.y[node]), cell = net.cell;
    const left = Math.min(...xs), top = Math.min(...ys), across = (Math.max(...xs) - left) / cell, down = (Math.max(...ys) - top) / cell;
    this.unit = Math.min(Math.max(880 / (across + 2), 22), cell > 1 ? 170 : 90);
    this.width = Math.max((across + 2) * this.unit, 700);
    const shift = (this.width - across * this.unit) / 2, room = net.shape === "boxes" ? 96 : this.unit;
    const tall = Math.max(Math.min(room, 620 / (down + 1)), Math.min(this.unit, 44));
    this.height = (down + 1) * tall + 40;
    for (const node of this.visible) at.set(node, [shift + (across_(node) - left) / cell * this.unit, 20 + tall / 2 + (net.y[node] - top) / cell * tall]);
    this.unit = Math.min(this.unit, tall);
    this.near = cell > 1 ? this.unit / cell * 1.41 : this.unit;  // between the nearest nodes
    return at;
  }
  // The column of a node; above a single box, the shared switches of a row are spread over its width.
  columns() {
    const net = this.model.network;
    if (!net.folded) return (node) => net.x[node];
    const owned = new Set(net.boxes.flat()), rows = new Map(), place = new Map();
    const wide = Math.max(...this.visible.filter((node) => owned.has(node)).map((node) => net.x[node])) + 1;
    for (const node of this.visible) if (!owned.has(node)) rows.set(net.y[node], [...(rows.get(net.y[node]) || []), node]);
    for (const row of rows.values()) row.forEach((node, at) => place.set(node, row.length > wide ? at - (row.length - wide) / 2 : ((at + 0.5) * wide) / row.length - 0.5));
    return (node) => (place.has(node) ? place.get(node) : net.x[node]);
  }

  // A link, shifted to its right; one that would pass other nodes bends around them.
  curve(link, nth) {
    const net = this.model.network, from = this.at.get(net.src[link]), to = this.at.get(net.dst[link]);
    if (!from || !to) return this.leaving(from || to, Boolean(from), nth);
    const [x1, y1] = from, [x2, y2] = to;
    const dx = x2 - x1, dy = y2 - y1, length = Math.hypot(dx, dy) || 1, r = this.radius;
    const nx = -dy / length, ny = dx / length, off = Math.min(r * 0.45, 4) + nth * Math.min(r, 7);
    const sx = x1 + dx / length * r * 0.8 + nx * off, sy = y1 + dy / length * r * 0.8 + ny * off;
    const ex = x2 - dx / length * r * 0.8 + nx * off, ey = y2 - dy / length * r * 0.8 + ny * off;
    const grid = net.shape === "grid", aslant = grid && Math.abs(Math.abs(dx) - Math.abs(dy)) < 1, local = aslant ? this.near : this.unit;
    const aligned = grid && (Math.abs(dx) < 1 || Math.abs(dy) < 1 || aslant);
    if (aligned && net.wraps && length > local * 2.4) return this.stubs(sx, sy, ex, ey, dx / length, dy / length, local);
    const bend = aligned && length > local * 1.6 ? Math.min(length * 0.18, local * 0.6) : nth * 6;
    const cx = (sx + ex) / 2 + nx * bend, cy = (sy + ey) / 2 + ny * bend;
    return { sx, sy, cx, cy, ex, ey, text: `M${sx.toFixed(1)} ${sy.toFixed(1)}Q${cx.toFixed(1)} ${cy.toFixed(1)} ${ex.toFixed(1)} ${ey.toFixed(1)}` };
  }
  // A link between the box that is drawn and another one: its end at the node, side by side with others.
  leaving([x, y], outward, nth) {
    const side = (nth % 2 ? 1 : -1) * Math.ceil(nth / 2) * 7 + (outward ? 2 : -2), up = this.unit * 0.55;
    const ax = x + side * 0.6, ay = y - this.radius * 0.8, bx = x + side * 1.6, by = y - this.radius - up;
    return { sx: ax, sy: ay, cx: (ax + bx) / 2, cy: (ay + by) / 2, ex: bx, ey: by, text: `M${ax.toFixed(1)} ${ay.toFixed(1)}L${bx.toFixed(1)} ${by.toFixed(1)}` };
  }
  // A link around the grid: its beginning leaves the picture on one side, its end comes back on the other.
  stubs(sx, sy, ex, ey, ux, uy, local) {
    const far = this.radius * 1.6 + local * 0.42, r = this.radius * 1.6;
    const ax = sx - ux * r, ay = sy - uy * r, bx = sx - ux * far, by = sy - uy * far, dx = ex + ux * far, dy = ey + uy * far, fx = ex + ux * r, fy = ey + uy * r;
    return { sx: ax, sy: ay, cx: bx, cy: by, ex: bx, ey: by,
      text: `M${ax.toFixed(1)} ${ay.toFixed(1)}L${bx.toFixed(1)} ${by.toFixed(1)}M${dx.toFixed(1)} ${dy.toFixed(1)}L${fx.toFixed(1)} ${fy.toFixed(1)}` };
  }

  build() {
    const { model } = this, net = model.network;
    this.at = this.places();
    this.radius = Math.max(Math.min(this.unit * 0.26, this.near * 0.36, 15), 2.2);
    this.picture = picture(this.width, this.height, `${net.name}: ${model.ranks} ranks, ${net.switches} switches, ${net.links} links`);
    this.picture.style.setProperty("--w", Math.min(Math.max(this.near / 62, 0.35), 1) * Math.max(Math.min(1, Math.sqrt(2500 / net.src.length)), 0.4));
    this.curves = new Map();
    const parallel = new Map(), owned = new Set((net.boxes || []).flat());
    for (let link = 0; link < net.src.length; link++) {
      const a = net.src[link], b = net.dst[link];
      if (a === b || !(this.at.has(a) || this.at.has(b))) continue;
      const inside = this.at.has(a) && this.at.has(b);
      if (!inside && !(owned.has(a) && owned.has(b))) continue;
      const key = inside ? a * model.nodes + b : -1 - (this.at.has(a) ? a : b), nth = parallel.get(key) || 0;
      parallel.set(key, nth + 1);
      this.curves.set(link, this.curve(link, nth));
    }
    this.drawBoxes();
    this.levels = Array.from({ length: LEVELS + 1 }, (_, level) => svg("path", { class: `link k${level}` }));
    this.cutPath = svg("path", { class: "link cut" });
    this.followed = svg("path", { class: "link path" });
    this.hovered = svg("path", { class: "link hover" });
    this.picture.append(...this.levels, this.cutPath, this.followed, this.hovered);
    this.drawNodes();
    this.picture.addEventListener("pointermove", (event) => this.point(event));
    this.picture.addEventListener("pointerleave", () => { this.hovered.setAttribute("d", ""); });
    this.holder.replaceChildren(this.picture);
  }
  drawBoxes() {
    const net = this.model.network;
    if (net.shape !== "boxes" || net.boxes.length < 2) return;
    net.boxes.forEach((box, number) => {
      const places = box.filter((node) => this.at.has(node)).map((node) => this.at.get(node));
      if (!places.length || (net.folded && !this.visible.includes(box[0]))) return;
      const pad = this.radius + 7, xs = places.map((p) => p[0]), ys = places.map((p) => p[1]);
      const x = Math.min(...xs) - pad, y = Math.min(...ys) - pad;
      const alike = net.kind.filter((kind) => kind === net.kind[number]).length;
      this.picture.append(svg("rect", { class: "box", x, y, width: Math.max(...xs) + pad - x, height: Math.max(...ys) + pad - y, rx: 6 }),
        svg("text", { x: x + 4, y: Math.max(...ys) + pad + 12, class: "small quiet" }, net.folded ? `box ${number}, one of ${alike} alike` : `box ${number}`));
    });
  }
  drawNodes() {
    const { model, state } = this;
    this.marks = new Map();
    const families = new Set();
    for (const node of this.visible) {
      const [x, y] = this.at.get(node), r = this.radius, title = svg("title", {}, `${model.kind(node)} ${model.nodeName(node)}`);
      const mark = node < model.ranks ? svg("circle", { class: "node", cx: x, cy: y, r }, title)
        : svg("rect", { class: "node switch", x: x - r * 1.7, y: y - r * 0.8, width: r * 3.4, height: r * 1.6, rx: 2 }, title);
      if (node < model.ranks) mark.addEventListener("click", () => state.set({ rank: node }));
      this.marks.set(node, mark);
      this.picture.append(mark);
      if (this.visible.length <= NAMED) this.drawName(node, x, y, families);
    }
  }
  // The name of a node inside it; of switches whose names are too long the indices, and their family once above them.
  drawName(node, x, y, families) {
    const { model } = this, r = this.radius, name = model.nodeName(node), found = name.match(/^(.*)\[([\d, ]+)\]$/);
    const room = node < model.ranks ? r * 1.9 : r * 3.3;
    const label = [name, ...(found ? [found[2].replace(/ /g, ""), found[2].split(", ").pop()] : [])].find((text) => text.length * 5 < room);
    const place = { x, y: y + 3.5, "text-anchor": "middle", "pointer-events": "none" };
    if (label && r > 5) this.picture.append(svg("text", { ...place, class: r < 9 || label.length > 3 ? "small" : null }, label));
    const family = found ? found[1] : name, key = `${family} ${this.model.network.y && this.model.network.y[node]}`;
    if (node < model.ranks || label === name || families.has(key)) return;
    families.add(key);
    this.picture.append(svg("text", { ...place, y: y - r - 3, class: "small quiet halo" }, family.slice(0, 18)));
  }

  // ---- what changes
  draw(values, changes) {
    const { model } = this, step = model.flow.each ? values.step : -1;
    const most = (step < 0 ? model.largestOfAll : model.largest) || 1;
    const texts = Array.from({ length: LEVELS + 1 }, () => []);
    for (const [link, curve] of this.curves) {
      const busy = model.busy(link, step);
      texts[busy > 0 ? Math.max(Math.ceil(busy / most * LEVELS - 1e-9), 1) : 0].push(curve.text);
    }
    texts.forEach((each, level) => this.levels[level].setAttribute("d", each.join("")));
    if (this.cutBox) this.cutBox.checked = Boolean(values.cut);
    this.drawCut(values.cut);
    this.drawJourney(values, step);
    for (const [node, mark] of this.marks) mark.classList.toggle("picked", node === values.rank);
    this.drawLegend(step, most, texts);
    if (this.step) {
      this.step.input.value = step + 1;
      this.step.input.setAttribute("aria-valuetext", step < 0 ? "all steps" : `step ${step} of ${model.steps}`);
      this.stepText.textContent = step < 0 ? `all ${model.steps} steps` : this.stepWords(step);
    }
    if (this.nodeList && this.nodeList.open) this.listLinks();
  }
  stepWords(step) {
    const flow = this.model.flow, at = this.model.stepOf[step];
    return `step ${step}: ${flow.messages[at]} messages, at most ${flow.largest[at]} of the vector on a link`;
  }
  drawLegend(step, most, texts) {
    const rows = [];
    for (let level = 0; level <= LEVELS; level++) {
      if (!texts[level].length) continue;
      const words = level === 0 ? "carries nothing" : `${level === 1 ? "up to" : `${short(20 * (level - 1), 3)} to`} ${20 * level} % of the longest time`;
      rows.push(html("li", {}, svg("svg", { viewBox: "0 0 34 14", "aria-hidden": "true" }, svg("path", { class: `link k${level}`, d: "M2 7H32" })), `${words}: ${texts[level].length} links`));
    }
    this.legend.replaceChildren(...rows);
  }
  drawCut(shown) {
    const { model } = this, parts = model.cut && model.cut.parts;
    const side = new Map();
    (parts || []).forEach((nodes, number) => nodes.forEach((node) => side.set(node, number + 1)));
    const crosses = (link) => {
      const a = model.network.src[link], b = model.network.dst[link];
      if (parts) return (side.get(a) || 0) !== (side.get(b) || 0);
      return a < model.ranks;
    };
    const text = shown ? [...this.curves].filter(([link]) => crosses(link)).map(([, curve]) => curve.text).join("") : "";
    this.cutPath.setAttribute("d", text);
    for (const [node, mark] of this.marks) mark.classList.toggle("inside", Boolean(shown && (parts ? side.has(node) : node < model.ranks)));
    if (shown) this.said.textContent = `The cut: ${model.cut.text}. Its links are dashed, its nodes have dashed borders.`;
  }
  drawJourney(values, step) {
    const { model } = this, has = new Set(), text = [];
    if (values.journey) {
      const until = step < 0 ? model.steps : step;
      for (const row of values.journey.rows) {
        const [from, to] = model.ends(row), at = model.transfers.step[row];
        if (at <= until) { has.add(from); has.add(to); }
        if (at === until || step < 0) for (const link of model.routeLinks(row)) if (this.curves.has(link)) text.push(this.curves.get(link).text);
      }
      const reached = [...has].filter((node) => node < model.ranks).length;
      this.said.textContent = `Following ${values.journey.title}: ${reached} ranks have sent or received it ${step < 0 ? "in the end" : `after step ${step}`}.`;
    }
    this.followed.setAttribute("d", text.join(""));
    for (const [node, mark] of this.marks) mark.classList.toggle("have", has.has(node));
  }

  // ---- reading it
  point(event) {
    const box = this.picture.getBoundingClientRect(), scale = this.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    let best = null, nearest = 7 * scale;
    for (const [link, c] of this.curves) {
      for (let i = 1; i < 8; i++) {
        const t = i / 8, u = 1 - t;
        const far = Math.hypot(u * u * c.sx + 2 * u * t * c.cx + t * t * c.ex - x, u * u * c.sy + 2 * u * t * c.cy + t * t * c.ey - y);
        if (far < nearest) { nearest = far; best = link; }
      }
    }
    this.hovered.setAttribute("d", best === null ? "" : this.curves.get(best).text);
    if (best !== null) this.said.textContent = this.linkWords(best);
  }
  linkWords(link) {
    const { model, state } = this, step = model.flow.each ? state.step : -1;
    const now = step < 0 ? "" : `, in step ${step} ${showShare(model.load(link, step))}`;
    return `${model.linkName(link)}: ${model.linkClass(link).text}${now}, in all steps ${showShare(model.load(link, -1))}`;
  }
  linksOfNode() {
    const { model } = this;
    const options = Array.from({ length: model.nodes }, (_, node) => [node, `${model.kind(node)} ${model.nodeName(node)}`]);
    this.listed = html("ul", {});
    this.node = choice("node ", options, 0, () => this.listLinks());
    this.nodeList = html("details", { ontoggle: () => this.listLinks() }, html("summary", {}, "Links of a node as text"), this.node.label, this.listed);
    return this.nodeList;
  }
  listLinks() {
    const node = Number(this.node.select.value), links = [...this.model.out[node], ...this.model.into[node]];
    this.listed.replaceChildren(...links.slice(0, 80).map((link) => html("li", {}, this.linkWords(link))));
  }
}
