// Asks before a page takes away what someone typed in a form: by closing the tab, by a link, or because a script shows
// something else in the form's place (the event "hookglass:leave", which is canceled if the form is to stay).

const typed = new Set(); // forms in which someone typed
const given = new Set(); // forms that hold what was typed on the page before: nothing of it is stored
const question = "What you typed is not saved. Leave it?";

let sending = null; // the form that is being sent
let agreed = false; // to lose what was typed, by the link that was just clicked

// A field named method hides the form's own.
const posts = (form) => form?.getAttribute("method") === "post";

function differs(field) {
  if (field.closest("[data-passing]")) return false; // what is tried, and never stored
  if (field.matches("select")) return field.selectedIndex !== Math.max(0, [...field.options].findIndex((o) => o.defaultSelected));
  if (field.matches("[type=checkbox], [type=radio]")) return field.checked !== field.defaultChecked;
  return field.matches("input:not([type=hidden], [type=submit], [type=button]), textarea") && field.value !== field.defaultValue;
}

const changed = (form) => given.has(form) || typed.has(form) && [...form.elements].some(differs);
const unsaved = (within, sent) => [...typed, ...given].some((form) => form.isConnected && form !== sent && within.contains(form) && changed(form));

document.addEventListener("input", (event) => posts(event.target.form) && typed.add(event.target.form));

// A form that was refused, or that a button changed, comes back as it was typed, as if that had always been in it.
for (const form of document.querySelectorAll("main form[data-unsaved], main form:has([aria-invalid=true], .fault:not([hidden], :empty), .problem-note)")) if (posts(form)) given.add(form);

// A script may put another form in the place of one, with the same text.
document.addEventListener("hookglass:swap", ({ detail: { from, to, edited } }) => (edited || changed(from)) && given.add(to));

addEventListener("submit", (event) => {
  if (event.defaultPrevented) return;
  sending = event.target;
  setTimeout(() => sending = null, 1000); // a download does not leave the page
});

addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || link.target || link.hasAttribute("download")) return;
  const to = new URL(link.href);
  if (to.origin !== location.origin || to.hash && to.pathname === location.pathname && to.search === location.search) return;
  if (!unsaved(document, null)) return;
  agreed = confirm(question);
  if (!agreed) event.preventDefault();
  setTimeout(() => agreed = false, 1000);
});

document.addEventListener("hookglass:leave", (event) => {
  if (unsaved(event.detail.within, event.detail.sent) && !confirm(question)) event.preventDefault();
});

addEventListener("beforeunload", (event) => !agreed && unsaved(document, sending) && event.preventDefault());
addEventListener("pageshow", () => sending = null);
