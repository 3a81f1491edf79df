// What every page has: copy buttons, ages that count up, and keyboard shortcuts.

const announce = (text) => {
  // WebKit lays a page out halfway where main and what is outside it changed together, and scrolls it as far up as the
  // half allows. So what is new in main is laid out first.
  document.body.getBoundingClientRect();
  document.getElementById("announce").textContent = text;
};

// The clipboard API needs a secure context and a permission. A server on the local network over plain HTTP has neither.
async function copy(text) {
  try {
    return await navigator.clipboard.writeText(text);
  } catch {}
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not copied");
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-of]");
  if (!button) return;
  const text = button.dataset.copy ?? document.getElementById(button.dataset.copyOf).textContent;
  const had = document.activeElement;
  try {
    await copy(text);
    button.dataset.copied = "yes";
    announce("Copied");
  } catch {
    button.dataset.copied = "no";
    announce("Could not copy");
  }
  had?.focus?.({ preventScroll: true });
  clearTimeout(button.copiedTimer);
  button.copiedTimer = setTimeout(() => delete button.dataset.copied, 1500);
});

// A refused form has the focus on its first faulty field (autofocus), which the browser scrolls to the edge of the screen.
// What is wrong with it is below it, and is scrolled into view, as is a fault of the form as a whole. Faults describe a
// field or are alerts; messages about past failures are neither.
const faulty = document.querySelector("main [aria-invalid][autofocus]:not(fieldset)")?.getAttribute("aria-describedby").split(" ");
const wrong = [...document.querySelectorAll("main :is(.fault, .problem-note):is([id], [role=alert])")].find((e) => e.checkVisibility() && e.textContent && (!faulty || faulty.includes(e.id)));
if (wrong && wrong.getBoundingClientRect().bottom > innerHeight) wrong.scrollIntoView({ block: "center" });

// A field that the browser refuses may be in a part of the form that is folded. It cannot be shown there, and the browser
// would do nothing at all.
document.addEventListener("invalid", (event) => {
  for (let fold = event.target; (fold = fold.closest("details:not([open])")); ) fold.open = true;
}, true);

// The browser's clock may be wrong. The page has the time of the node, which dates everything, so the difference of the
// clocks is known here and to the modules of a page. The time since the response does not count as a difference.
const received = performance.getEntriesByType("navigation")[0]?.responseStart || 0;
const ahead = Date.now() - (performance.now() - received) - Date.parse(document.documentElement.dataset.now);
document.documentElement.dataset.ahead = String(Math.round(ahead));

// Ages, in the same words as show.Ago.
function ago(then, now) {
  const seconds = Math.floor((now - then) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds}s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ago`;
  return `${Math.floor(seconds / 86400)}d ago`;
}

function age() {
  const now = Date.now() - ahead;
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const text = ago(Date.parse(time.dateTime), now);
    if (time.textContent !== text) time.textContent = text;
  }
}
setInterval(() => document.hidden || age(), 5000);
document.addEventListener("visibilitychange", () => document.hidden || age());

// Times are shown in UTC, so that two people see the same. In another time zone, the local time stands beside the time
// of the open request, and in the tooltip of all others.
function here(time) {
  const at = new Date(time.dateTime);
  const [year, two] = ["numeric", "2-digit"];
  const parts = { year, month: two, day: two, hour: two, minute: two, second: two, hourCycle: "h23", timeZoneName: "short" };
  return at.getTimezoneOffset() === 0 ? "" : at.toLocaleString("sv-SE", parts);
}

function localise() {
  for (const time of document.querySelectorAll("time[data-here]")) {
    time.removeAttribute("data-here");
    const text = here(time);
    if (!text) continue;
    const beside = document.createElement("span");
    beside.className = "here small";
    const sameDay = text.startsWith(time.dateTime.slice(0, 10));
    beside.textContent = `${sameDay ? text.slice(11) : text} here`;
    time.after(" ", beside);
  }
}
localise();
document.addEventListener("hookglass:fresh", localise);

document.addEventListener("pointerover", (event) => {
  const time = event.target.closest?.("time[datetime]");
  const text = time && !time.dataset.told && here(time);
  if (!text) return;
  time.dataset.told = "yes";
  time.title = `${time.title ? `${time.title}\n` : ""}${text} here`;
});

// Text that is cut off gets its full text as a tooltip.
document.addEventListener("pointerover", (event) => {
  const cut = event.target;
  if (cut.title || cut.scrollWidth <= cut.clientWidth || getComputedStyle(cut).textOverflow !== "ellipsis" || cut.closest("[title]")) return;
  cut.title = cut.textContent.trim();
});

// What this browser keeps for every page.
function remembered(what) {
  try {
    return localStorage.getItem(`hookglass:${what}`);
  } catch {
    return null; // local storage is off
  }
}

function remember(what, value) {
  try {
    localStorage.setItem(`hookglass:${what}`, value);
  } catch {}
}

// Shortcuts are off while typing, and with modifiers, which belong to the browser. A page gets all other keys with the
// event "hookglass:key", and cancels it if it used the key.
const keys = document.getElementById("keys");
const palette = document.getElementById("palette");
const typing = (target) => target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], dialog, [popover]:popover-open");
const modal = () => document.querySelector("dialog[open]:modal");
document.querySelector("[data-keys]")?.addEventListener("click", () => keys.showModal());
document.querySelector("[data-palette]")?.addEventListener("click", () => showPalette());

// Single keys can be turned off, in this browser: dictation and unsteady hands press them by accident (WCAG 2.1.4).
const single = keys?.querySelector("[name=single]");
if (single) {
  single.checked = remembered("keys") !== "off";
  single.addEventListener("change", () => remember("keys", single.checked ? "on" : "off"));
}

let leader = 0; // when g was pressed: the next letter names a page
document.addEventListener("keydown", (event) => {
  if (event.isComposing) return;
  if (palette && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (palette.open) palette.close();
    else if (!modal()) showPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || modal()) return;
  if (event.key.length === 1 && single?.checked === false) return;
  if (event.timeStamp - leader < 1500 && leader) {
    leader = 0;
    const link = document.querySelector(`a[data-go="${CSS.escape(event.key)}"]`);
    // A page of the endpoint wins over a global page, although it comes later in the document.
    const local = document.querySelector(`.subnav a[data-go="${CSS.escape(event.key)}"]`);
    (local ?? link)?.click();
    event.preventDefault();
    return;
  }
  let mine = true;
  if (keys && event.key === "?") keys.showModal();
  else if (event.key === "g" && document.querySelector("[data-go]")) leader = event.timeStamp;
  else if (event.key === "[" && document.querySelector(".rail")) rail();
  else mine = false;
  const told = new CustomEvent("hookglass:key", { detail: event.key, cancelable: true });
  if (mine || !document.dispatchEvent(told)) event.preventDefault();
});

// The list of endpoints can be hidden, in this browser.
const root = document.documentElement;
if (remembered("rail") === "off") root.dataset.rail = "off";

function rail() {
  const off = root.dataset.rail !== "off";
  if (off) root.dataset.rail = "off";
  else delete root.dataset.rail;
  remember("rail", off ? "off" : "on");
  announce(off ? "The list of endpoints is hidden" : "The list of endpoints is shown");
}

// ---- The palette: all links of the navigation, all endpoints, and the commands of a page (data-command)

function commands() {
  const all = [];
  for (const link of document.querySelectorAll(".subnav a, .bar-nav a, .bar-account")) {
    const local = link.closest(".subnav") !== null;
    all.push({ words: link.textContent.trim(), note: local ? "this endpoint" : "page", go: () => link.click() });
  }
  for (const link of document.querySelectorAll(".rail li a")) {
    all.push({ words: link.querySelector(".rail-name").textContent, note: "endpoint", to: link.getAttribute("href"), go: () => link.click() });
  }
  for (const button of document.querySelectorAll("[data-command]")) {
    if (button.checkVisibility() || button.dataset.command) {
      all.push({ words: button.dataset.command || button.textContent.trim(), note: "command", go: () => button.click() });
    }
  }
  if (keys) all.push({ words: "Keyboard shortcuts", note: "?", go: () => keys.showModal() });
  if (document.querySelector(".rail")) all.push({ words: "Show or hide the list of endpoints", note: "[", go: rail });
  return all;
}

let offered = [];
let shown = []; // those of them that match, and what the server found

function showPalette() {
  const input = palette.querySelector("input");
  input.value = "";
  offered = commands();
  forget();
  palette.showModal();
  offer("");
  input.focus();
}

function offer(text) {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  shown = [];
  document.getElementById("palette-list").replaceChildren();
  show(offered.filter((c) => wanted.every((w) => c.words.toLowerCase().includes(w))).slice(0, 50));
}

// show adds to the list. What is in it stays: it may be selected, or just being pressed.
function show(found) {
  const list = document.getElementById("palette-list");
  for (const c of found) {
    const item = document.createElement("li");
    item.id = `palette-${shown.push(c)}`;
    item.role = "option";
    const note = document.createElement("span");
    note.className = "small";
    note.textContent = c.note;
    item.append(c.words, note);
    item.addEventListener("click", () => {
      palette.close();
      c.go();
    });
    list.append(item);
  }
  const none = document.getElementById("palette-none");
  none.hidden = shown.length > 0;
  none.textContent = "No results.";
  if (picked() < 0) pick(0);
}

// A page lists only some of the endpoints, by name. The server finds all of them, by id as well. Its results come after
// the others, so that the selection stays where it is.
let asking = 0;
let soon = 0;
async function ask(text) {
  const turn = ++asking;
  const none = document.getElementById("palette-none");
  try {
    const answer = await fetch(`${palette.dataset.ask}?${new URLSearchParams({ text })}`);
    if (!answer.ok && answer.status !== 422) throw new Error(String(answer.status)); // 422: the text is too long for any endpoint
    const part = document.createElement("template");
    part.innerHTML = await answer.text();
    if (turn !== asking) return;
    const told = [...part.content.querySelectorAll("li a")].map((link) => {
      const to = link.getAttribute("href");
      return { words: link.textContent, note: "endpoint", to, go: () => location.assign(to) };
    });
    show(told.filter((c) => !shown.some((s) => s.to === c.to)));
  } catch {
    if (turn === asking) none.textContent = "No results here, and the server could not be reached.";
  }
}

function pick(n) {
  const items = [...document.getElementById("palette-list").children];
  const at = items.length ? (n + items.length) % items.length : -1;
  items.forEach((item, i) => item.ariaSelected = String(i === at));
  items[at]?.scrollIntoView({ block: "nearest" });
  const input = palette.querySelector("input");
  if (at >= 0) input.setAttribute("aria-activedescendant", items[at].id);
  else input.removeAttribute("aria-activedescendant");
}

const picked = () => [...document.getElementById("palette-list").children].findIndex((item) => item.ariaSelected === "true");

// forget drops the results for the previous text.
function forget() {
  asking++;
  clearTimeout(soon);
}

palette?.addEventListener("input", (event) => {
  const text = event.target.value;
  forget();
  offer(text);
  if (!palette.dataset.ask || !text.trim()) return;
  document.getElementById("palette-none").textContent = "Searching…";
  soon = setTimeout(ask, 150, text.trim());
});
palette?.addEventListener("keydown", (event) => {
  const items = [...document.getElementById("palette-list").children];
  const at = picked();
  if (event.key === "ArrowDown") pick(at + 1);
  else if (event.key === "ArrowUp") pick(at - 1);
  else if (event.key === "Enter") items[at]?.click();
  else return;
  event.preventDefault();
});
for (const dialog of document.querySelectorAll("dialog")) {
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // a click on the backdrop
}

// Scroll the current page into view in the navigation.
for (const nav of document.querySelectorAll(".bar-nav, .subnav")) {
  const here = nav.querySelector("[aria-current]");
  if (here) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}

// A page that answers a form is reloaded, and gone back to, without sending the form again: that would make a second
// token or test message, and Back would show the browser's own page, which asks whether to send it.
const { again } = document.documentElement.dataset;
if (again) history.replaceState(history.state, "", again);

// A notice is shown once, not again after a reload or through a shared address.
const address = new URL(location.href);
if (address.searchParams.has("done")) {
  for (const name of ["done", "at"]) address.searchParams.delete(name);
  history.replaceState(history.state, "", address);
}

// ---- Without a network

const offline = document.getElementById("offline");
const connection = async () => {
  // A browser without a network reports offline even if the server runs on the same machine.
  const icon = document.querySelector("link[rel=icon]").href;
  const reached = navigator.onLine || (await fetch(icon, { method: "HEAD", cache: "no-store" }).catch(() => null)) !== null;
  offline.hidden = reached || navigator.onLine;
  if (!offline.hidden) announce("You are offline");
};
addEventListener("online", connection);
addEventListener("offline", connection);
connection();

// Problems in the background are shown at the top of the page until they are over (an empty text).
const trouble = document.getElementById("trouble");
document.addEventListener("hookglass:trouble", (event) => {
  if (trouble.textContent === event.detail) return;
  trouble.textContent = event.detail;
  trouble.hidden = !event.detail;
  announce(event.detail);
});

// A form with something typed in it leaves the page only once the server answers and the session goes on: the page that a
// browser shows instead takes the text away. Forms that scripts send stay on the page and have their own messages.
const checking = new WeakSet(); // forms whose check is under way
const passed = new WeakSet(); // forms that may leave

const typedIn = (form) => [...form.elements].some((e) => e.value && (e.matches("textarea") || e.matches("input") && !/^(hidden|radio|checkbox|submit|button)$/.test(e.type)));

// unsent says why a form cannot be sent now. It is empty if it can.
async function unsent() {
  const { session } = document.body.dataset;
  try {
    const answer = await fetch(session ?? document.querySelector("link[rel=icon]").href, { method: session ? "GET" : "HEAD", cache: "no-store", signal: AbortSignal.timeout(15000) });
    if (answer.status === 401) return "You are signed out, so nothing was sent. Sign in again in another tab, then try again here.";
    if (answer.status < 500) return "";
  } catch {}
  return "The server could not be reached, so nothing was sent. Your input is still here. Try again.";
}

// blame shows below the button of a form why it was not sent, with the way to sign in if that is why.
const notes = new WeakMap();
function blame(form, submitter, why) {
  notes.get(form)?.remove();
  if (!why) return;
  const note = document.createElement("p");
  notes.set(form, note);
  note.className = "fault";
  note.role = "alert";
  note.dataset.unsent = "";
  const bar = submitter?.parentElement;
  (bar && bar !== form && form.contains(bar) ? bar : form).after(note);
  note.textContent = why;
  if (why.startsWith("You")) {
    const link = document.createElement("a");
    link.href = new URL("sign-in", document.querySelector(".brand").href);
    link.target = "_blank";
    link.rel = "noopener";
    link.textContent = "Sign in";
    note.append(" ", link);
  }
  note.scrollIntoView({ block: "nearest" });
}

document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  const leaves = form.getAttribute("method") === "post" || submitter?.formMethod === "post" || form.querySelector("textarea") || !navigator.onLine && form.getAttribute("method") === "get";
  if (!leaves || form.matches("[data-part], [data-test]") || submitter?.matches("[data-edit], [data-stays]") || navigator.onLine && !typedIn(form)) return;
  if (passed.delete(form)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (checking.has(form) || form.dataset.sent) return;
  checking.add(form);
  submitter?.setAttribute("aria-busy", "true");
  const why = await unsent();
  checking.delete(form);
  submitter?.removeAttribute("aria-busy");
  blame(form, submitter, why);
  if (why) return;
  passed.add(form);
  form.requestSubmit(submitter);
  passed.delete(form); // where it was not valid, or a question was answered with no
}, true);

// A form is sent only once, however often its button is pressed, and shows that it is being sent.
document.addEventListener("submit", (event) => {
  // A download does not leave the page, so its form stays usable.
  if (event.defaultPrevented || event.target.method !== "post" || event.submitter?.hasAttribute("data-download")) return;
  if (event.target.dataset.sent) return event.preventDefault();
  event.target.dataset.sent = "yes";
  event.submitter?.setAttribute("aria-busy", "true");
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  for (const button of document.querySelectorAll("[aria-busy=true][type=submit]")) button.removeAttribute("aria-busy");
});

// On the way back, Safari shows a page as it left it, whatever its headers say, unless it came by TLS. A session that has
// ended meanwhile shows nothing any more.
addEventListener("pageshow", async (event) => {
  const { session } = document.body.dataset;
  if (!event.persisted || !session) return;
  const answer = await fetch(session, { cache: "no-store" }).catch(() => null);
  if (answer?.status === 401) location.reload();
});

// For the same reason a page is left without the secrets on it that are shown once.
addEventListener("pagehide", () => document.querySelectorAll("[data-once]").forEach((e) => e.remove()));

document.addEventListener("hookglass:announce", (event) => announce(event.detail));

// A confirmation takes the focus when it opens, on its harmless button.
document.addEventListener("toggle", (event) => {
  if (event.newState === "open" && event.target.matches?.("[popover]") && !event.target.contains(document.activeElement)) {
    [...event.target.querySelectorAll("[data-first], button")].find((e) => e.checkVisibility())?.focus(); // some are in folded details
  }
  // The browser gives the focus back, but not to another popover.
  if (event.newState === "closed" && document.activeElement === document.body) document.querySelector(`:popover-open [popovertarget="${event.target.id}"]`)?.focus();
}, true);

// Tab stays within an open popover, which covers what is behind it.
document.addEventListener("keydown", (event) => {
  const open = event.key === "Tab" && document.activeElement.closest("[popover]:popover-open");
  if (!open) return;
  const stops = [...open.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")].filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility());
  const [first, last] = [stops[0], stops.at(-1)];
  if (document.activeElement !== (event.shiftKey ? first : last)) return;
  event.preventDefault();
  (event.shiftKey ? last : first).focus();
});
