// The data of a section with what follows from them: steps one by one, loads of links and ranks, times of steps.
class Model {
  constructor(data) {
    Object.assign(this, data);
    const net = data.network, flow = data.flow;
    this.ranks = net.ranks;
    this.nodes = net.ranks + net.switches;
    this.drawn = net.shape !== "none";
    this.stepOf = [];  // step -> different step
    flow.times.forEach((times, at) => { for (let i = 0; i < times; i++) this.stepOf.push(at); });
    this.steps = this.stepOf.length;
    this.out = Array.from({ length: this.nodes }, () => []);
    this.into = Array.from({ length: this.nodes }, () => []);
    for (let link = 0; link < (this.drawn ? net.src.length : 0); link++) {
      this.out[net.src[link]].push(link);
      this.into[net.dst[link]].push(link);
    }
    this.largest = this.drawn ? this.mostBusy() : 0;
    this.totals = this.drawn ? flow.loads.map((row) => this.sum(row)) : [];
  }

  nodeName(node) { return this.network.names ? this.network.names[node] : String(node); }
  kind(node) { return node < this.ranks ? "rank" : "switch"; }
  linkName(link) { return `${this.nodeName(this.network.src[link])} to ${this.nodeName(this.network.dst[link])}`; }
  linkClass(link) { return this.network.classes[this.network.class[link]]; }
  sum(row) { return this.flow.each ? row.reduce((all, one, at) => all + one * this.flow.times[at], 0) : row[0]; }

  // Shares of the vector; busy: per unit of bandwidth, which is what takes time.
  load(link, step) {
    const flow = this.flow, row = flow.loads[flow.link[link]];
    return (step < 0 || !flow.each ? this.sum(row) : row[this.stepOf[step]]) / flow.whole;
  }
  busy(link, step) { return this.load(link, step) / this.linkClass(link).bandwidth; }
  mostBusy() {
    const seen = new Map();
    this.flow.link.forEach((row, link) => { const key = `${row},${this.network.class[link]}`; if (!seen.has(key)) seen.set(key, link); });
    let most = 0, all = 0;
    for (const link of seen.values()) {
      const row = this.flow.loads[this.flow.link[link]], width = this.linkClass(link).bandwidth * this.flow.whole;
      for (const value of row) most = Math.max(most, value / width);
      all = Math.max(all, this.busy(link, -1));
    }
    this.largestOfAll = all;
    return most;
  }

  // Seconds of a step for a vector of some bytes: the last message to arrive.
  seconds(step, size) {
    const pairs = this.flow.pairs[this.stepOf[step]];
    return pairs.reduce((most, [latency, perByte]) => Math.max(most, latency + perByte * size), 0);
  }

  // The part of a step in which the links of a rank carry data, in one direction: 0 to 1.
  share(rank, step, links) {
    const most = links[rank].reduce((all, link) => Math.max(all, this.busy(link, step)), 0);
    const pairs = this.flow.pairs[this.stepOf[step]], slowest = pairs.length ? pairs[pairs.length - 1][1] : 0;
    const longest = this.longestOf(step);
    return slowest && longest ? most / longest : 0;
  }
  longestOf(step) {
    const at = this.stepOf[step];
    this.longest = this.longest || [];
    if (this.longest[at] === undefined) {
      let most = 0;
      const seen = new Set();
      for (let link = 0; link < this.network.src.length; link++) {
        const key = this.flow.link[link] * this.network.classes.length + this.network.class[link];
        if (!seen.has(key)) { seen.add(key); most = Math.max(most, this.busy(link, step)); }
      }
      this.longest[at] = most;
    }
    return this.longest[at];
  }

  // ---- transfers
  routeLinks(row) {
    const t = this.transfers, route = t.route[row];
    return t.links.slice(t.start[route], t.start[route + 1]);
  }
  ends(row) {
    const links = this.routeLinks(row);
    return [this.network.src[links[0]], this.network.dst[links[links.length - 1]]];
  }
  rowsOf(rank, step) {
    const found = [], t = this.transfers;
    if (!t) return found;
    if (!this.byStep) {
      this.byStep = Array.from({ length: this.steps }, () => []);
      t.step.forEach((at, row) => this.byStep[at].push(row));
    }
    for (const row of this.byStep[step]) if (this.ends(row).includes(rank)) found.push(row);
    return found;
  }
  part(row) {
    const t = this.transfers;
    const whole = t.lo[row] === 0 && t.hi[row] === t.parts;
    const last = t.hi[row] - 1, parts = last === t.lo[row] ? `part ${last}` : `parts ${t.lo[row]} to ${last}`;
    const name = this.shardName(t.shard[row]);
    return whole ? name : `${name}, ${parts} of ${t.parts}`;
  }
  rowText(row) {
    const [from, to] = this.ends(row);
    const links = this.routeLinks(row).length, over = links > 1 ? ` over ${links} links` : "";
    return `${this.nodeName(from)} to ${this.nodeName(to)}${over}: ${this.transfers.action[row] ? "adds" : "copies"} ${this.part(row)}`;
  }
  shardName(shard) {  // of an alltoall, also from which rank to which
    const ranks = this.transfers.pairs, from = ranks[Math.floor(shard / ranks.length)], to = ranks[shard % ranks.length];
    return ranks.length ? `shard ${shard} (${this.nodeName(from)} to ${this.nodeName(to)})` : `shard ${shard}`;
  }
  shards() { return this.transfers ? [...new Set(this.transfers.shard)].sort((a, b) => a - b) : []; }
  wholeShard(shard) {
    return { row: -1, title: this.shardName(shard), rows: this.transfers.shard.flatMap((one, row) => (one === shard ? [row] : [])) };
  }
  // All transfers of the data of one transfer, in order of steps.
  journey(row) {
    const t = this.transfers, found = [];
    for (let other = 0; other < t.step.length; other++)
      if (t.shard[other] === t.shard[row] && t.lo[other] < t.hi[row] && t.lo[row] < t.hi[other]) found.push(other);
    return found;
  }
}
