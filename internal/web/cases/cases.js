// Checks the last response against the assertions while they are typed.

const form = document.querySelector("form[data-check]");
let timer = 0;
let asked = 0;

async function check() {
  const mine = ++asked;
  try {
    const answer = await fetch(form.dataset.check, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok || mine !== asked) return;
    const template = document.createElement("template");
    template.innerHTML = await answer.text();
    const next = template.content.getElementById("check");
    const now = document.getElementById("check");
    if (!next || mine !== asked || next.outerHTML === now.outerHTML) return;
    const said = now.querySelector("[data-say]")?.dataset.say;
    now.replaceWith(next);
    const say = next.querySelector("[data-say]")?.dataset.say;
    if (say && say !== said) document.dispatchEvent(new CustomEvent("hookglass:announce", { detail: say }));
  } catch {} // the next keystroke retries
}

form?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, 250);
});

// A run that has ended may have brought a new response.
document.addEventListener("hookglass:fresh", (event) => {
  if (event.detail === "runs" && form) check();
});

// Typing a URL selects it as the target.
form?.elements.namedItem("target_url")?.addEventListener("input", () => {
  form.querySelector("input[name=target][value=url]").checked = true;
});
