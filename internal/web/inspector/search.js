// Completion in the search field: the terms of the query language, one at a time.

const input = document.getElementById("q");
const values = {
  "provider:": ["github", "stripe", "shopify", "slack", "twilio"],
  "sig:": ["verified", "failed", "unchecked"],
  "method:": ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"],
  "status:": ["2xx", "4xx", "5xx", "200", "404"],
  "delivery:": ["failed", "delivered", "pending", "skipped", "none"],
  "tunnel:": ["failed", "delivered", "none"],
  "is:": ["webhook", "email", "ignored"],
  "has:": ["attachment"],
  "after:": ["15m", "1h", "24h", "7d"],
  "before:": ["1h", "24h", "7d"],
  "size:": [">10k", ">1m", "<1k"],
  "content_type:": ["application/json", "application/x-www-form-urlencoded", "text/plain"],
};
const fields = {
  "provider:": "detected provider", "event:": "type of event, as invoice.*", "sig:": "signature status", "method:": "method",
  "status:": "answer to the sender", "path:": "path begins with", "header.": "a header, as header.x-id:7", "query.": "a parameter, as query.page:2",
  "body./": "a JSON value, as body./id:7", "content_type:": "media type", "tag:": "tag", "note:": "note contains", "ip:": "sender's address", "from:": "mail from", "to:": "mail to",
  "subject:": "mail subject", "attachment:": "name of a mail's file", "has:": "attachment", "after:": "received after", "before:": "received before", "size:": "bytes of the body", "is:": "webhook, email or ignored", "delivery:": "state at forwarding targets", "tunnel:": "state at local machines", "id:": "of that id",
};

const list = document.createElement("ul");
list.id = "q-list";
list.role = "listbox";
list.ariaLabel = "Completions";
list.className = "completions";
list.tabIndex = -1; // keeps the list out of the tab order, where browsers put scrollable elements
list.hidden = true;
input.after(list);
input.role = "combobox";
input.setAttribute("aria-controls", list.id);
input.setAttribute("aria-autocomplete", "list");
input.ariaExpanded = "false";

// A space ends a term, except inside a quoted value.
const begins = String.raw`-?(?:[a-z][\w-]*(?:\.[^\s:"]*)?:)?"`;
const ended = new RegExp(String.raw`\s*(?:${begins}(?:\\.|[^"\\])*"|(?!${begins})\S*)\s`, "iy");

function term() {
  const before = input.value.slice(0, input.selectionStart);
  let start = 0;
  ended.lastIndex = 0;
  while (ended.test(before)) start = ended.lastIndex;
  return before.slice(start);
}

// The completions of a term: first fields by prefix, then values, including those on the page.
function options(text) {
  const not = text.startsWith("-") ? "-" : "";
  const bare = text.slice(not.length).toLowerCase();
  const field = Object.keys(values).concat("tag:", "event:").find((f) => bare.startsWith(f));
  if (!field) {
    return bare === "" && input.value.trim() !== "" ? [] : Object.entries(fields).filter(([f]) => f.startsWith(bare)).map(([f, means]) => ({ text: not + f, means, goesOn: true }));
  }
  let known = values[field] ?? [];
  if (field === "tag:") known = [...document.querySelectorAll("#bulk-tags option")].map((o) => /[\s"]/.test(o.value) ? JSON.stringify(o.value) : o.value);
  return known.filter((v) => (field + v).toLowerCase().startsWith(bare) && field + v !== bare).map((v) => ({ text: not + field + v, means: "" }));
}

let at = -1;
function show() {
  const all = options(term()).slice(0, 12);
  at = -1;
  list.replaceChildren(...all.map((o, n) => {
    const item = document.createElement("li");
    item.id = `q-${n}`;
    item.role = "option";
    item.ariaSelected = "false";
    const code = document.createElement("code");
    code.textContent = o.text;
    const means = document.createElement("span");
    means.className = "small";
    means.textContent = o.means;
    item.append(code, means);
    item.addEventListener("mousedown", (event) => {
      event.preventDefault(); // the field keeps the focus
      take(o);
    });
    item.option = o;
    return item;
  }));
  list.hidden = all.length === 0;
  input.ariaExpanded = String(all.length > 0);
  input.removeAttribute("aria-activedescendant");
}

function hide() {
  list.hidden = true;
  input.ariaExpanded = "false";
  input.removeAttribute("aria-activedescendant");
  at = -1;
}

function take(option) {
  const end = input.selectionStart;
  const start = end - term().length;
  const text = option.text + (option.goesOn ? "" : " ");
  input.setRangeText(text, start, end, "end");
  option.goesOn ? show() : hide();
}

input.addEventListener("input", show);
input.addEventListener("focus", show);
input.addEventListener("blur", hide);
input.addEventListener("keydown", (event) => {
  const items = [...list.children];
  if (event.key === "Escape") {
    if (list.hidden) input.blur();
    hide();
    event.preventDefault();
    return;
  }
  if (list.hidden || items.length === 0) return;
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    at = (at + (event.key === "ArrowDown" ? 1 : -1) + items.length + (at < 0 && event.key === "ArrowUp" ? 1 : 0)) % items.length;
    items.forEach((item, n) => item.ariaSelected = String(n === at));
    items[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", items[at].id);
  } else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) {
    take(items[at].option);
  } else return;
  event.preventDefault();
});
