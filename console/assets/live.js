// Keeps a page up to date, and never moves what a person looks at. Every page works without this
// file.
"use strict";
const most = 3000; // milliseconds between two questions
const least = 250; // likewise
const old = 5000; // milliseconds after which a page says how old it is
const sign = document.getElementById("live");
const begun = performance.timeOrigin + performance.getEntriesByType("navigation")[0].responseStart - sign.dataset.age;
let shown = { version: "none", at: begun }; // what the page shows, as the server names it, and when that was so
let newer = null; // the same of a page that is not shown yet, with its document
let paused = false;
let asking = false;
let trouble = null;
let timer = 0;

const main = () => document.getElementById("main");

// held reports whether a change would move what a person points at, selected or writes.
function held() {
  const written = main().contains(document.activeElement) && document.activeElement.matches("input, select, textarea, button, summary");
  const filled = [...main().querySelectorAll("input")].some((i) => i.checked !== i.defaultChecked || i.value !== i.defaultValue);
  return paused || written || filled || !getSelection().isCollapsed ||
    main().matches(":has(:is(table, ul, form, pre, details, a):hover, input[name=id]:checked, tr.at, li.at)");
}

// text returns what a row or a page says, without its ages.
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
  main().replaceWith(document.adoptNode(newer.page.getElementById("main")));
  for (const [i, d] of [...main().querySelectorAll("details")].entries()) d.open = open[i] ?? d.open;
  shown = newer;
  newer = null;
  tell();
  document.dispatchEvent(new Event("loaded"));
}

// age says how long ago the page was as it shows, if that is long ago.
function age() {
  const s = Math.floor((Date.now() - (newer?.same ? newer : shown).at) / 1000);
  if (s * 1000 <= old) return "";
  return " · as of " + (s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min` : `${Math.floor(s / 3600)} h`) + " ago";
}

function tell() {
  const n = newer?.changes ?? 0;
  const news = n > 0 && `${n} ${n === 1 ? "change" : "changes"}, l loads them`;
  const says = (trouble ?? (news || (paused ? "Paused, p goes on" : "Live, p pauses"))) + age();
  if (sign.textContent !== says) sign.textContent = says;
  sign.classList.toggle("news", n > 0);
  sign.classList.toggle("quiet", n === 0 && !paused && !trouble);
}

// take notes what an answer says of the page that there is now.
async function take(answer) {
  const version = answer.headers.get("Nixie-Live");
  const at = Date.now() - answer.headers.get("Nixie-Age");
  if (!version) return;
  if (answer.status === 204) {
    (newer ?? shown).at = at;
    return;
  }
  newer = { version, at, page: new DOMParser().parseFromString(await answer.text(), "text/html") };
  newer.changes = changes(newer.page);
  newer.same = text(main()) === text(newer.page.getElementById("main"));
}

async function ask() {
  if (asking || document.hidden) return;
  asking = true;
  clearTimeout(timer);
  let next = most;
  try {
    const has = newer ?? shown;
    const age = Math.max(0, Math.round(Date.now() - has.at));
    const answer = await fetch(location.href, { headers: { "Nixie-Live": has.version, "Nixie-Age": age }, signal: AbortSignal.timeout(20000) });
    next = answer.headers.get("Nixie-Next") ?? most;
    await take(answer);
    if (answer.redirected && !held()) location.replace(answer.url);
    if (newer && !held()) load();
    trouble = answer.ok ? null : answer.status === 404 ? "What this shows is gone" : "The store does not answer; this asks again";
  } catch {
    trouble = "The console does not answer; this asks again";
  }
  asking = false;
  tell();
  timer = setTimeout(ask, Math.min(Math.max(next, least), most));
}

keys.p = () => { paused = !paused; if (!paused) load(); tell(); };
keys.l = load;
sign.addEventListener("click", () => (newer ? load() : keys.p()));
document.addEventListener("visibilitychange", ask);
sign.hidden = false;
tell();
setInterval(tell, 1000);
timer = setTimeout(ask, most);
