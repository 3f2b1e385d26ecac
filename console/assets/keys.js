// Keys for those who prefer them. Every page works without this file.
"use strict";
const rows = () => [...document.querySelectorAll("main tbody tr, .alerts li")];
const at = () => document.querySelector("main .at");

function move(by) {
  const all = rows();
  const next = Math.min(Math.max(all.indexOf(at()) + by, 0), all.length - 1);
  at()?.classList.remove("at");
  all[next]?.classList.add("at");
  all[next]?.scrollIntoView({ block: "nearest" });
}

// redrive takes the selected letters, or what the page offers.
function redrive() {
  const selected = document.querySelector("input[name=id]:checked");
  if (selected) selected.form.requestSubmit();
  else document.querySelector("a.button")?.click();
}

// The entry of this page is in sight, also where the menu is wider than a phone.
document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

const keys = {
  "/": () => document.querySelector("main input[type=search], input[type=search]").focus(),
  j: () => move(1),
  k: () => move(-1),
  x: () => at()?.querySelector("input[type=checkbox]")?.click(),
  o: () => (at()?.querySelector(".wide a") ?? at()?.querySelector("a"))?.click(), // a cause, not its count
  r: redrive,
  Escape: () => at()?.classList.remove("at"),
  "?": () => document.getElementById("keys").toggleAttribute("open"),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
  const act = keys[event.key];
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  act();
});
