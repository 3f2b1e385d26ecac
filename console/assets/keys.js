// Keys for those who prefer them. Every page works without this file.
"use strict";
const rows = [...document.querySelectorAll("tbody tr, .alerts li")];
let at = -1;

function move(by) {
  rows[at]?.classList.remove("at");
  at = Math.min(Math.max(at + by, 0), rows.length - 1);
  rows[at]?.classList.add("at");
  rows[at]?.scrollIntoView({ block: "nearest" });
}

// redrive takes the selected letters, or what the page offers.
function redrive() {
  const selected = document.querySelector("input[name=id]:checked");
  if (selected) selected.form.requestSubmit();
  else document.querySelector("a.button")?.click();
}

const keys = {
  "/": () => document.querySelector("main input[type=search], input[type=search]").focus(),
  j: () => move(1),
  k: () => move(-1),
  x: () => rows[at]?.querySelector("input[type=checkbox]")?.click(),
  o: () => rows[at]?.querySelector("a")?.click(),
  r: redrive,
  "?": () => document.getElementById("keys").toggleAttribute("open"),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input:not([type=checkbox]), select, textarea");
  const act = keys[event.key];
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
  event.preventDefault();
  act();
});
