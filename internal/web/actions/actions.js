// The builder of actions. Its buttons work on the server without leaving the page, and faults show up as one types.

let timer = 0;
let asked = 0;
let editing = false; // a button of the form is at work
let touched = new Set(); // fields that the user has visited; only these show faults

const form = () => document.getElementById("builder");

function parse(text) {
  return new DOMParser().parseFromString(text, "text/html");
}

// The operators exists and not_exists take no value.
function values() {
  for (const operator of form().querySelectorAll("select[name$='.operator']")) {
    const value = form().elements.namedItem(operator.name.replace(/operator$/, "value"));
    const none = operator.value === "exists" || operator.value === "not_exists";
    value.disabled = none;
    value.closest(".field").classList.toggle("unused", none);
  }
}

function blame(result) {
  const faults = new Map();
  for (const item of result.querySelectorAll("[data-field]")) {
    if (!faults.has(item.dataset.field)) faults.set(item.dataset.field, item.dataset.text);
  }
  for (const slot of form().querySelectorAll("[data-fault]")) {
    const name = slot.dataset.fault;
    const field = form().elements.namedItem(name);
    const text = !field?.name || touched.has(name) ? (faults.get(name) ?? "") : "";
    if (slot.textContent !== text) slot.textContent = text;
    slot.hidden = text === "";
    if (text) field?.setAttribute?.("aria-invalid", "true");
    else field?.removeAttribute?.("aria-invalid");
  }
}

async function check() {
  const mine = ++asked;
  try {
    const answer = await fetch(form().dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form())) });
    if (!answer.ok || mine !== asked) return;
    const next = parse(await answer.text()).getElementById("tried");
    if (!next || mine !== asked) return;
    const now = document.getElementById("tried");
    blame(next);
    if (next.outerHTML === now.outerHTML) return;
    const said = now.querySelector("[data-say]")?.dataset.say;
    now.replaceWith(next);
    const say = next.querySelector("[data-say]")?.dataset.say;
    if (say && say !== said) document.dispatchEvent(new CustomEvent("hookglass:announce", { detail: say }));
  } catch {} // the next keystroke retries
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(check, 350);
}

const tell = (text) => document.dispatchEvent(new CustomEvent("hookglass:trouble", { detail: text }));

// edited returns the page with the form as a button makes it. It takes the form's place, so what was typed while it was
// on its way is sent as well.
async function edited(button) {
  const filled = () => new URLSearchParams(new FormData(form(), button)).toString();
  for (;;) {
    const data = filled();
    const answer = await fetch(form().action, { method: "POST", body: new URLSearchParams(data) });
    if (answer.status === 401) throw new Error("You are signed out. Sign in again in another tab, then continue here.");
    const page = parse(await answer.text());
    if (!page.getElementById("builder")) throw new Error(page.querySelector("[data-problem]")?.textContent);
    if (data === filled()) return page;
  }
}

async function edit(button) {
  button.setAttribute("aria-busy", "true");
  const page = await edited(button);
  asked++;
  const next = page.getElementById("builder");
  tell("");
  const tests = page.getElementById("backtest");
  const focus = next.querySelector("[autofocus]") ?? tests?.querySelector(`[autofocus], button[value="${button.value}"]`);
  focus?.removeAttribute("autofocus");
  const keep = scrollY;
  const from = form();
  from.replaceWith(next);
  document.dispatchEvent(new CustomEvent("hookglass:swap", { detail: { from, to: next, edited: button.value !== "backtest" } }));
  if (tests) document.getElementById("backtest").replaceWith(tests);
  touched = new Set();
  begin();
  scrollTo(0, keep);
  focus?.focus({ preventScroll: tests?.contains(focus) });
  const came = tests?.querySelector("[role=status], [role=alert]");
  if (came) document.dispatchEvent(new CustomEvent("hookglass:announce", { detail: came.textContent }));
  if (form().elements.namedItem("event")?.value) soon();
}

function begin() {
  values();
  form().addEventListener("submit", async (event) => {
    const button = event.submitter;
    if (!button?.matches("[data-edit]")) return;
    event.preventDefault();
    if (editing) return; // its answer would take the place of the first one's form
    editing = true;
    try {
      await edit(button);
    } catch (e) {
      button.removeAttribute("aria-busy");
      tell(e instanceof TypeError ? "The server could not be reached. Try again." : `Something went wrong. ${e.message}`);
    } finally {
      editing = false;
    }
  });
}

if (form()) {
  begin();
  document.addEventListener("input", (event) => {
    if (event.target.form !== form() || !event.target.name) return;
    touched.add(event.target.name);
    if (event.target.name.endsWith(".operator")) values();
    soon();
  });
  document.addEventListener("focusout", (event) => {
    if (event.target.form === form() && event.target.name && event.target.value) touched.add(event.target.name);
  });
  // Enter presses the first button of a form, which saves. In the query field it must run the back-test instead.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.form !== form() || event.target.name !== "q") return;
    event.preventDefault();
    form().requestSubmit(document.querySelector('#backtest [value="backtest"]'));
  });
  // A click on a fault moves the focus to its field.
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".faults a");
    if (!link) return;
    event.preventDefault();
    const field = document.getElementById(decodeURIComponent(link.hash.slice(1)));
    touched.add(field?.name);
    field?.scrollIntoView({ block: "center" });
    (field?.matches("fieldset") ? field.querySelector("input:not([type=hidden])") : field)?.focus();
  });
}
