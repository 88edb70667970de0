// The node by device grid: each node a row, each device a square. Fill = the chosen measure, border = state,
// hatch = held but idle, strip at the foot = how much of it is held, in as many parts as there are holders.

import { ago, cores, memory, percent, say, UNKNOWN } from "./words.js";

const IDLE_FRAC = 0.1;
const HOT_C = 83;
const TOO_HOT_C = 87;
const COLD_C = 25;

const frac = (part, whole) => (part == null || !whole ? null : part / whole);

// Each mode: fill in 0..1 (null = no data), and the text in the square.
const MODES = {
  utilisation: { value: (d) => d.utilised_frac, text: (d) => Math.round(d.utilised_frac * 100), ends: ["0 %", "100 %"] },
  memory: {
    value: (d) => frac(d.memory_used_mib, d.memory_mib),
    text: (d) => Math.round((100 * d.memory_used_mib) / d.memory_mib),
    ends: ["0 %", "100 %"],
  },
  power: { value: (d, scale) => frac(d.power_w, scale.power_w), text: (d) => Math.round(d.power_w), ends: ["0 W", null] },
  temperature: {
    value: (d) => (d.temperature_c == null ? null : (d.temperature_c - COLD_C) / (HOT_C - COLD_C)),
    text: (d) => `${Math.round(d.temperature_c)}°`,
    ends: [`${COLD_C} °C`, `${HOT_C} °C`],
  },
  allocation: { value: (d) => d.allocated_milli / 1000, text: (d) => Math.round(d.allocated_milli / 10), ends: ["0 %", "100 %"] },
};

function make(tag, className = "", text = null) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text != null) element.textContent = text;
  return element;
}

const isIdle = (d) => d.allocated_milli > 0 && d.utilised_frac != null && d.utilised_frac < IDLE_FRAC;
const isUnhealthy = (d) => d.health === "unhealthy" || d.health === "lost";
const isBlocked = (d, node) => d.health === "unknown" || (node != null && node.state !== "ready");

function holdersText(device) {
  return (device.holders ?? [])
    .map((holder) => {
      const who = holder.name ? `${holder.name}${holder.tenant ? ` (${holder.tenant})` : ""}` : holder.tenant ?? say("another_tenant");
      return holder.gpu_milli < 1000 ? `${who} ${percent(holder.gpu_milli / 1000)}` : who;
    })
    .join(", ");
}

function stateText(device, node) {
  if (isUnhealthy(device)) return say("grid_unhealthy");
  if (isIdle(device)) return say("grid_idle");
  if (device.allocated_milli > 0) return device.allocated_milli < 1000 ? `${say("grid_held")} ${percent(device.allocated_milli / 1000)}` : say("grid_held");
  return isBlocked(device, node) ? say("grid_blocked") : say("grid_free");
}

const nearText = (device) => [device.numa_node >= 0 ? `NUMA ${device.numa_node}` : "", device.nic].filter(Boolean).join(", ") || UNKNOWN;

const facts = (device, node) => [
  [say("flavor"), device.flavor_name ?? device.flavor],
  [say("state"), stateText(device, node)],
  [say("utilisation"), percent(device.utilised_frac)],
  [say("memory"), `${memory(device.memory_used_mib)} / ${memory(device.memory_mib)}`],
  [say("power"), device.power_w == null ? UNKNOWN : `${Math.round(device.power_w)} W`],
  [say("temperature"), device.temperature_c == null ? UNKNOWN : `${Math.round(device.temperature_c)} °C`],
  [say("near_to"), nearText(device)],
  [say("held_by"), holdersText(device) || UNKNOWN],
];

function factList(pairs) {
  const list = make("dl", "k-facts");
  for (const [name, value] of pairs) list.append(make("dt", "", name), make("dd", "", value));
  return list;
}

/** Draw the grid in `card` (templates/parts/grid.html). Call `update(rows)` at each snapshot or delta. */
export function grid(card) {
  const body = card.querySelector("[data-grid-body]");
  const legend = card.querySelector("[data-grid-legend]");
  const table = card.querySelector("[data-grid-table]");
  const hover = make("div", "k-hover");
  hover.hidden = true;
  document.body.append(hover);
  const cells = new Map(); // device key -> element
  const nodeRows = new Map(); // node key -> {element, parts}
  let rows = new Map();
  let shape = "";
  let mode = "utilisation";
  let pointed = null;

  const nodeOf = (device) => rows.get(`node:${device.node}`);
  const scale = () => {
    let power = 0;
    for (const row of rows.values()) if (row.kind === "device") power = Math.max(power, row.power_w ?? 0);
    return { power_w: Math.max(100, Math.ceil(power / 100) * 100) };
  };

  function drawLegend(top) {
    const [low, high] = MODES[mode].ends;
    const measure = make("span");
    measure.append(low, make("i", "k-scale"), high ?? `${top.power_w} W`);
    legend.replaceChildren(measure);
    if (mode === "temperature") legend.append(key("is-hot", `≥ ${HOT_C} °C`), key("is-too-hot", `≥ ${TOO_HOT_C} °C`));
    legend.append(key("", say("grid_free")), key("is-held", say("grid_held")), key("is-idle", say("grid_idle")));
    legend.append(key("is-blocked", say("grid_blocked")), key("is-unhealthy", say("grid_unhealthy")));
  }

  function key(className, text) {
    const item = make("span");
    item.append(make("i", `k-cell k-key ${className}`), text);
    return item;
  }

  /** Return nodes in pools of one flavor, both sorted by name, devices by index. */
  function pools() {
    const devices = new Map();
    const found = new Map();
    for (const [id, row] of rows) {
      if (row.kind !== "device") continue;
      if (!devices.has(row.node)) devices.set(row.node, []);
      devices.get(row.node).push([id, row]);
    }
    for (const [id, row] of rows) {
      if (row.kind !== "node") continue;
      const own = (devices.get(row.name) ?? []).sort((a, b) => a[1].index - b[1].index);
      const name = own.length ? own[0][1].flavor_name ?? own[0][1].flavor : say("cpu_only");
      if (!found.has(name)) found.set(name, []);
      found.get(name).push({ id, row, own });
    }
    const order = (a, b) => a.localeCompare(b, undefined, { numeric: true });
    return [...found]
      .sort((a, b) => order(a[0], b[0]))
      .map(([name, nodes]) => [name, nodes.sort((a, b) => order(a.row.name, b.row.name))]);
  }

  function build(groups) {
    cells.clear();
    nodeRows.clear();
    const batch = document.createDocumentFragment();
    for (const [name, nodes] of groups) {
      const head = make("div", "k-pool", name);
      const count = nodes.reduce((sum, node) => sum + node.own.length, 0);
      head.append(make("small", "", say("grid_nodes", { nodes: nodes.length, devices: count })));
      batch.append(head);
      for (const node of nodes) batch.append(buildNode(node));
    }
    body.replaceChildren(groups.length ? batch : make("p", "k-nothing", say("grid_empty")));
    body.removeAttribute("aria-busy");
    const first = body.querySelector(".k-cell");
    if (first) first.tabIndex = 0;
  }

  function buildNode({ id, row, own }) {
    const element = make("div", "k-node");
    const name = make("div", "k-node-name");
    const badge = make("span", "k-badge");
    name.append(make("b", "", row.name), badge);
    name.firstChild.title = row.name;
    const meters = make("div", "k-meters");
    const [cpu, ram] = [meter(say("cpu")), meter(say("ram"))];
    meters.append(cpu.element, ram.element);
    const squares = make("div", "k-cells");
    for (const [key] of own) {
      const cell = make("div", "k-cell");
      cell.dataset.device = key;
      cell.tabIndex = -1;
      cell.setAttribute("role", "img");
      cell.append(document.createTextNode(""), make("span", "k-held"));
      cells.set(key, cell);
      squares.append(cell);
    }
    if (!own.length) squares.append(make("span", "k-nothing", say("grid_no_devices")));
    element.append(name, meters, squares);
    nodeRows.set(id, { badge, cpu, ram });
    return element;
  }

  function meter(label) {
    const element = make("div", "k-meter");
    const bar = make("i");
    const value = make("span");
    element.append(make("span", "", label), bar, value);
    return { element, bar, value };
  }

  function fillMeter(target, held, busy, title) {
    target.bar.style.setProperty("--held", Math.min(1, held ?? 0));
    target.bar.style.setProperty("--busy", Math.min(1, busy ?? 0));
    target.value.textContent = percent(busy ?? held);
    target.element.title = title;
  }

  function fillNode(row, parts) {
    parts.badge.hidden = row.state === "ready";
    parts.badge.className = `k-badge k-node-${row.state}`;
    parts.badge.textContent = say(`node_${row.state}`);
    parts.badge.title = row.seen_at ? say("seen", { age: ago(Date.parse(row.seen_at)) }) : "";
    const cpu = frac(row.cpu_allocated_milli, row.cpu_milli);
    const ram = frac(row.memory_allocated_mib, row.memory_mib);
    fillMeter(parts.cpu, cpu, row.cpu_utilised_frac,
      `${say("cpu")}: ${say("grid_held")} ${cores(row.cpu_allocated_milli)} / ${cores(row.cpu_milli)}, ${say("utilisation")} ${percent(row.cpu_utilised_frac)}`);
    fillMeter(parts.ram, ram, frac(row.memory_used_mib, row.memory_mib),
      `${say("ram")}: ${say("grid_held")} ${memory(row.memory_allocated_mib)} / ${memory(row.memory_mib)}, ${say("utilisation")} ${memory(row.memory_used_mib)}`);
  }

  function fillCell(device, cell, top) {
    const node = nodeOf(device);
    const value = MODES[mode].value(device, top);
    const shown = value == null ? null : Math.min(1, Math.max(0, value));
    const hot = mode === "temperature" && device.temperature_c >= HOT_C;
    cell.style.setProperty("--value", shown ?? 0);
    cell.firstChild.data = value == null ? "–" : MODES[mode].text(device);
    cell.classList.toggle("has-no-data", value == null);
    cell.classList.toggle("is-mid", shown > 0.48 && shown <= 0.66 && !hot);
    cell.classList.toggle("is-high", shown > 0.66 && !hot);
    cell.classList.toggle("is-hot", hot && device.temperature_c < TOO_HOT_C);
    cell.classList.toggle("is-too-hot", hot && device.temperature_c >= TOO_HOT_C);
    cell.classList.toggle("is-held", device.allocated_milli > 0);
    cell.classList.toggle("is-idle", isIdle(device));
    cell.classList.toggle("is-blocked", isBlocked(device, node));
    cell.classList.toggle("is-unhealthy", isUnhealthy(device));
    cell.dataset.held = device.allocated_milli;
    fillHeld(cell.lastChild, device);
    cell.setAttribute("aria-label", `${device.node} ${device.index}: ${facts(device, node).map((pair) => pair.join(" ")).join("; ")}`);
  }

  function fillHeld(strip, device) {
    const parts = device.holders?.length ? device.holders.map((holder) => holder.gpu_milli) : device.allocated_milli ? [device.allocated_milli] : [];
    while (strip.childElementCount > parts.length) strip.lastChild.remove();
    while (strip.childElementCount < parts.length) strip.append(make("i"));
    parts.forEach((milli, index) => strip.children[index].style.setProperty("--part", Math.min(1, milli / 1000)));
  }

  function showHover(cell) {
    pointed = cell;
    const device = cell && rows.get(cell.dataset.device);
    hover.hidden = !device;
    if (!device) return;
    hover.replaceChildren(make("h3", "", `${device.node} · ${say("device")} ${device.index}`), factList(facts(device, nodeOf(device))));
    const box = cell.getBoundingClientRect();
    const left = Math.min(box.left, innerWidth - hover.offsetWidth - 8);
    const below = box.bottom + 6 + hover.offsetHeight < innerHeight;
    hover.style.left = `${Math.max(8, left)}px`;
    hover.style.top = `${below ? box.bottom + 6 : Math.max(8, box.top - hover.offsetHeight - 6)}px`;
  }

  function drawTable(groups) {
    if (!table.open) return;
    const element = make("table", "table");
    const head = make("tr");
    for (const name of [say("node"), say("device"), ...facts({}, null).map(([title]) => title)]) {
      const cell = make("th", "", name);
      cell.scope = "col";
      head.append(cell);
    }
    element.createTHead().append(head);
    const rowsOf = element.createTBody();
    for (const [, nodes] of groups) {
      for (const { row, own } of nodes) {
        for (const [, device] of own) {
          const line = rowsOf.insertRow();
          for (const text of [row.name, device.index, ...facts(device, row).map(([, value]) => value)]) line.insertCell().textContent = text;
        }
      }
    }
    table.querySelector("div").replaceChildren(element);
  }

  function update(next) {
    rows = next;
    const groups = pools();
    const nextShape = JSON.stringify(groups.map(([name, nodes]) => [name, nodes.map((node) => [node.id, node.own.map(([id]) => id)])]));
    if (nextShape !== shape) {
      shape = nextShape;
      build(groups);
    }
    const top = scale();
    drawLegend(top);
    for (const [id, parts] of nodeRows) fillNode(rows.get(id), parts);
    for (const [id, cell] of cells) fillCell(rows.get(id), cell, top);
    drawTable(groups);
    if (pointed?.isConnected) showHover(pointed);
    else showHover(null);
  }

  card.querySelector("[data-grid-modes]").addEventListener("click", (event) => {
    const button = event.target.closest("[data-grid-mode]");
    if (!button) return;
    mode = button.dataset.gridMode;
    for (const other of card.querySelectorAll("[data-grid-mode]")) other.setAttribute("aria-pressed", String(other === button));
    update(rows);
  });
  table.addEventListener("toggle", () => drawTable(pools()));
  body.addEventListener("pointerover", (event) => showHover(event.target.closest(".k-cell")));
  body.addEventListener("pointerleave", () => showHover(null));
  body.addEventListener("focusin", (event) => showHover(event.target.closest(".k-cell")));
  body.addEventListener("focusout", () => showHover(null));
  body.addEventListener("keydown", (event) => {
    if (event.key === "Escape") showHover(null);
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: "up", ArrowDown: "down" }[event.key];
    const from = event.target.closest(".k-cell");
    if (!step || !from) return;
    event.preventDefault();
    const to = neighbour(from, step);
    if (!to) return;
    from.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });

  function neighbour(from, step) {
    if (typeof step === "number") {
      const all = [...cells.values()];
      return all[all.indexOf(from) + step];
    }
    const column = [...from.parentElement.children].indexOf(from);
    const lines = [...body.querySelectorAll(".k-cells")].filter((line) => line.querySelector(".k-cell"));
    const line = lines[lines.indexOf(from.parentElement) + (step === "up" ? -1 : 1)];
    return line && (line.children[column] ?? line.lastElementChild);
  }

  return { update };
}
