// The JSON tree of a body with its pointers, and the search in the whole body.

const detail = document.getElementById("detail");
const jwtForm = /^"eyJ[\w-]+\.eyJ[\w-]*\.[\w-]*"$/;
const say = (text) => document.dispatchEvent(new CustomEvent("hookglass:announce", { detail: text }));

// ---- Places in the tree

const tree = () => detail.querySelector(".tree");
const nodeOf = (target) => target.closest("[data-n]");
const children = (node) => node.matches(".tree") ? [...node.children].filter((c) => c.matches("[data-n]"))
  : [...node.querySelectorAll(":scope > .branch > [data-n]")];
const parent = (node) => node.parentElement.closest("[data-n]");
const step = (name) => "/" + name.replaceAll("~", "~0").replaceAll("/", "~1");

// A name as it is shown, like show.Line: characters that would hide or reorder their neighbours are escaped.
const odd = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029\ufeff]/gu;
const spelled = (text) => text.replace(odd, (c) => c < " " ? String.fromCodePoint(0x2400 + c.codePointAt(0))
  : `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

// A pointer ends at a string, also at one that holds JSON (RFC 6901).
function pointer(node) {
  const up = parent(node);
  if (!up) return "";
  const held = up.closest("[data-held]");
  if (held) return pointer(held);
  return pointer(up) + (up.dataset.n === "[" ? `/${children(up).indexOf(node)}` : step(node.dataset.k));
}

// The value as JSON, to the extent that it is shown; of a string that holds JSON what it holds.
function value(node, indent = "") {
  if (node.matches(".leaf")) {
    const v = node.querySelector("[data-v]");
    return v ? v.textContent : node.querySelector(".j-mark:last-child").textContent.replace(/,$/, "");
  }
  const [open, close] = node.dataset.n === "[" ? ["[", "]"] : ["{", "}"];
  const inner = children(node).map((c) => {
    const name = c.querySelector(":scope > .j-name, :scope > summary > .j-name");
    const text = c.hasAttribute("data-held") ? JSON.stringify(value(c)) : value(c, `${indent}  `);
    return `${indent}  ${name ? `${name.textContent}: ` : ""}${text}`;
  });
  return inner.length ? `${open}\n${inner.join(",\n")}\n${indent}${close}` : open + close;
}

function choose(node, { focus = false } = {}) {
  const t = node.closest(".tree");
  t.querySelector("[data-chosen]")?.removeAttribute("data-chosen");
  node.setAttribute("data-chosen", "");
  const place = t.parentElement.querySelector(".tree-place");
  const at = pointer(node);
  place.hidden = false;
  place.querySelector("[data-pointer]").textContent = at === "" ? "(the whole)" : spelled(at);
  place.querySelector("[data-pointer-copy]").dataset.copy = at;
  const text = value(node);
  place.querySelector("[data-value-copy]").dataset.copy = text;
  const token = place.querySelector("[data-jwt]");
  token.dataset.jwt = node.matches(".leaf") && jwtForm.test(text) ? text.slice(1, -1) : "";
  token.hidden = token.dataset.jwt === "";
  const head = node.matches("details") ? node.querySelector("summary") : node;
  head.scrollIntoView({ block: "nearest" });
  if (focus) t.focus({ preventScroll: true });
  return at;
}

const shown = (t) => [...t.querySelectorAll("[data-n]")].filter((n) => n.checkVisibility());

detail.addEventListener("click", (event) => {
  const inTree = event.target.closest(".tree") && nodeOf(event.target);
  if (inTree) choose(inTree);
  const fold = event.target.closest("[data-tree]");
  if (fold) {
    const open = fold.dataset.tree === "open";
    for (const d of fold.closest(".view-tree").querySelectorAll(".tree details")) d.open = open || !parent(d);
  }
  const place = event.target.closest("[data-go-pointer]");
  if (place) go(place.dataset.goPointer);
});

detail.addEventListener("keydown", (event) => {
  const t = event.target.closest(".tree");
  if (!t || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = shown(t);
  const at = all.findIndex((n) => n.hasAttribute("data-chosen"));
  const node = all[at];
  let next;
  switch (event.key) {
    case "ArrowDown": next = all[Math.min(at + 1, all.length - 1)]; break;
    case "ArrowUp": next = all[Math.max(at - 1, 0)]; break;
    case "ArrowRight":
      if (node?.matches("details")) node.open = true;
      next = node;
      break;
    case "ArrowLeft":
      if (node?.matches("details[open]")) node.open = false;
      else if (node) next = parent(node);
      next ??= node;
      break;
    case "Enter":
      if (node?.matches("details")) node.open = !node.open;
      next = node;
      break;
    default: return;
  }
  event.preventDefault();
  event.stopPropagation();
  if (next) say(choose(next) || "the whole");
});

// go expands the tree down to a pointer and selects it. A pointer beyond the shown part is only announced.
function go(to) {
  let node = children(tree())[0];
  for (const part of to.split("/").slice(1)) {
    if (!node?.matches("details")) return say("This part of the body is not shown here");
    node.open = true;
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    node = node.dataset.n === "[" ? children(node)[Number(name)] : children(node).find((c) => c.dataset.k === name);
  }
  if (!node) return say("This part of the body is not shown here");
  choose(node, { focus: true });
}

// ---- Search in the whole body, done by the server

let searching = 0;
async function search(form) {
  const turn = ++searching;
  const text = form.elements.text.value;
  const found = form.closest(".view-tree").querySelector(".found");
  if (text === "") return found.replaceChildren();
  try {
    const answer = await fetch(`${form.dataset.find}?${new URLSearchParams({ text })}`);
    if (!answer.ok) throw new Error(String(answer.status));
    const html = await answer.text();
    if (turn === searching) found.innerHTML = html; // rendered by this server, which escapes everything
  } catch {
    if (turn === searching) found.textContent = "The search failed. Try again.";
  }
}

let soon = 0;
detail.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-find]");
  if (!form) return;
  clearTimeout(soon);
  soon = setTimeout(search, 200, form);
});
detail.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-find]");
  if (!form) return;
  event.preventDefault();
  clearTimeout(soon);
  search(form);
});
