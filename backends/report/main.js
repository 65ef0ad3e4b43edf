// Every figure is drawn when it comes near the screen, so that long pages open at once; all are before printing.
const sections = new Map();

function sectionOf(number) {
  if (!sections.has(number)) {
    const model = new Model(JSON.parse(document.getElementById(`data-${number}`).textContent));
    model.number = number;
    sections.set(number, { model, state: makeState({ step: -1, rank: 0, journey: null, cut: false }) });
  }
  return sections.get(number);
}

function drawStage(stage) {
  if (stage.childElementCount) return;
  const { model, state } = sectionOf(Number(stage.dataset.section)), kind = stage.dataset.figure;
  const missing = (why) => stage.append(html("p", { class: "note" }, why));
  if (kind === "goodput") return new GoodputPicture(model, stage);
  if (kind === "threadblocks") return model.program ? new ThreadblocksPicture(model, state, stage) : missing(`No threadblocks: ${model.absent}.`);
  if (!model.drawn) return missing(`The network has ${model.nodes} nodes and ${model.network.links} links, and is not drawn. The tables hold its figures.`);
  return kind === "network" ? new NetworkPicture(model, state, stage) : new SchedulePicture(model, state, stage);
}

const stages = [...document.querySelectorAll(".stage")];
const near = new IntersectionObserver((seen) => seen.forEach((one) => { if (one.isIntersecting) { near.unobserve(one.target); drawStage(one.target); } }), { rootMargin: "600px" });
stages.forEach((stage) => near.observe(stage));
document.querySelectorAll("a.show-cut").forEach((link) => link.addEventListener("click", () => sectionOf(Number(link.dataset.section)).state.set({ cut: true })));
addEventListener("beforeprint", () => stages.forEach(drawStage));
