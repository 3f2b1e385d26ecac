// Keeps a page up to date, and never moves what a person looks at. Every page works without this
// file.
"use strict";
const every = 3000; // milliseconds, as the server looks
const sign = document.getElementById("live");
let version = "none"; // of what the page shows, as the server names it
let newer = null; // a document that is not shown yet
let paused = false;
let asking = false;

const main = () => document.getElementById("main");

// held reports whether a change would move what a person points at, selected or writes.
function held() {
  const written = main().contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button, summary");
  return paused || written || main().matches(":has(:is(table, ul, form, pre, details, a):hover, input:checked, tr.at, li.at)") ||
    !getSelection().isCollapsed;
}

// text returns what a row says, without its ages.
function text(row) {
  const copy = row.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.remove();
  return copy.textContent;
}

// changes counts the rows and figures that differ from those that are shown.
function changes(to) {
  const parts = "tbody tr, .alerts li, .figures div";
  const shown = new Map();
  for (const row of main().querySelectorAll(parts)) shown.set(text(row), (shown.get(text(row)) ?? 0) + 1);
  let n = 0;
  for (const row of to.querySelectorAll("main :is(" + parts + ")")) {
    const left = shown.get(text(row)) ?? 0;
    if (left > 0) shown.set(text(row), left - 1);
    else n++;
  }
  return n;
}

// load shows the newest document. What was unfolded stays so.
function load() {
  if (!newer) return;
  const open = [...main().querySelectorAll("details")].map((d) => d.open);
  main().replaceWith(document.adoptNode(newer.getElementById("main")));
  for (const [i, d] of [...main().querySelectorAll("details")].entries()) d.open = open[i] ?? d.open;
  newer = null;
  tell();
  document.dispatchEvent(new Event("loaded"));
}

function tell(trouble) {
  const n = newer ? changes(newer) : 0;
  sign.textContent = trouble ?? (n > 0 ? `${n} ${n === 1 ? "change" : "changes"}, l loads them` : paused ? "Paused, p goes on" : "Live, p pauses");
  sign.classList.toggle("news", n > 0);
  sign.classList.toggle("quiet", n === 0 && !paused && !trouble);
}

async function ask() {
  if (asking || document.hidden) return;
  asking = true;
  try {
    const answer = await fetch(location.href, { headers: { "Nixie-Live": version } });
    if (answer.status === 200 && answer.headers.get("Nixie-Live")) {
      version = answer.headers.get("Nixie-Live");
      newer = new DOMParser().parseFromString(await answer.text(), "text/html");
    }
    if (newer && !held()) load();
    tell(answer.ok ? undefined : "The store does not answer; this asks again");
  } catch {
    tell("The console does not answer; this asks again");
  } finally {
    asking = false;
  }
}

keys.p = () => { paused = !paused; if (!paused) load(); tell(); };
keys.l = load;
sign.addEventListener("click", () => (newer ? load() : keys.p()));
sign.hidden = false;
tell();
setInterval(ask, every);
