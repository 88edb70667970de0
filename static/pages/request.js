// The request form: shows what belongs to the chosen cluster, and types remedies into the fields.

const form = document.querySelector("[data-request-form]");
const processesOnly = JSON.parse(document.getElementById("processes-only")?.textContent ?? "[]");

function show(element, visible) {
  element.hidden = !visible;
  for (const field of element.querySelectorAll("input, select, textarea")) field.disabled = !visible;
}

function arrange() {
  const cluster = form.elements.cluster.value;
  const devices = form.elements.devices.value.trim();
  const wantsDevices = devices !== "" && devices !== "0";
  for (const part of form.querySelectorAll("[data-for-images]")) show(part, !processesOnly.includes(cluster));
  for (const part of form.querySelectorAll("[data-for-shares]")) show(part, devices === "1");
  form.querySelector("[data-for-devices]").hidden = !wantsDevices;
  let any = false;
  for (const part of form.querySelectorAll("[data-cluster-only]")) {
    const mine = part.dataset.clusterOnly === cluster;
    any ||= mine;
    show(part, mine && wantsDevices);
  }
  form.querySelector("[data-no-devices]").hidden = any;
  form.querySelector("[data-any-device]").hidden = !any;
}

function type(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (Array.isArray(value)) {
      for (const box of form.querySelectorAll(`input[type=checkbox][name="${CSS.escape(name)}"]`)) {
        box.checked = value.includes(box.value);
      }
    } else if (form.elements[name]) {
      form.elements[name].value = value;
    }
  }
  form.dispatchEvent(new Event("change", { bubbles: true }));
}

if (form) {
  form.addEventListener("change", arrange);
  form.addEventListener("input", arrange);
  form.addEventListener("submit", () => { form.querySelector("[data-submit]").disabled = true; });
  window.addEventListener("pageshow", () => { form.querySelector("[data-submit]").disabled = false; });
  document.getElementById("estimate")?.addEventListener("click", (event) => {
    const button = event.target.closest("[data-changes]");
    if (button) type(JSON.parse(button.dataset.changes));
  });
  arrange();
  form.querySelector(".is-invalid, .k-error")?.scrollIntoView({ block: "center" });
}
