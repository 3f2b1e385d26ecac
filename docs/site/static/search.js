// Search over window.nixiePages, which search-index.js sets. It is loaded when the search is used
// first, as a script and not by a fetch, so that it works from file://.
(() => {
  const root = new URL(".", document.currentScript.src);
  const input = document.querySelector("[type=search]");
  const found = document.getElementById("found");
  const most = 12;
  let pages;
  input.disabled = false;

  // The menu shows where the page stands in it.
  const menu = document.getElementById("menu");
  const here = menu.querySelector("[aria-current]");
  const point = () => { if (here) menu.scrollTop = here.offsetTop - menu.clientHeight / 2; };
  menu.addEventListener("toggle", point);
  point();

  const load = () => {
    if (load.asked) return;
    load.asked = true;
    const script = document.createElement("script");
    script.src = new URL("search-index.js", root).href;
    script.onload = () => {
      pages = window.nixiePages.map((p) => ({
        ...p, lower: p.text.toLowerCase(), words: p.words.map((w) => w.toLowerCase()),
        low: p.title.toLowerCase(), parts: p.headings.map((h) => ({ ...h, low: h.title.toLowerCase() })),
      }));
      show();
    };
    document.head.append(script);
  };

  const begins = (text, word) => text.split(/[^\p{L}\p{N}-]+/u).some((w) => w.startsWith(word));

  // A page that words.toml names for what was typed comes first. Else a page has to have all words:
  // the title tells more than a heading, a heading more than the text.
  const score = (p, typed, words) => {
    let sum = 0;
    if (p.words.includes(typed)) sum += 1000;
    else if (typed.length > 2 && p.words.some((w) => w.startsWith(typed))) sum += 300;
    if (p.low === typed || p.low === "nixie " + typed) sum += 500;
    let has = true;
    for (const word of words) {
      const times = p.lower.split(word, 12).length - 1;
      if (times === 0) has = false;
      sum += times / 10;
      if (begins(p.low, word)) sum += 30;
      if (p.parts.some((h) => begins(h.low, word))) sum += 5;
    }
    if (!has && sum < 300) return 0;
    if (words.length > 1 && p.parts.some((h) => h.low.includes(typed))) sum += 15;
    if (words.length > 1 && p.lower.includes(typed)) sum += 5;
    return p.late ? sum / 8 : sum;
  };

  const show = () => {
    const typed = input.value.toLowerCase().trim().replace(/\s+/g, " ");
    found.replaceChildren();
    found.hidden = !typed || !pages;
    if (found.hidden) return;
    const words = typed.split(" ");
    const hits = pages.map((p) => [score(p, typed, words), p]).filter(([s]) => s > 0).sort((a, b) => b[0] - a[0]);
    const count = document.createElement("p");
    count.role = "status";
    count.textContent = hits.length === 0 ? `No page has “${input.value}”.` : `${hits.length} page${hits.length > 1 ? "s" : ""}`;
    found.append(count, ...hits.slice(0, most).map(([, p]) => result(p, typed, words)));
  };

  const result = (p, typed, words) => {
    const named = p.low.includes(typed) || p.words.includes(typed);
    const part = !named && p.parts.find((h) => h.title !== p.title && words.every((w) => begins(h.low, w)));
    const link = document.createElement("a");
    link.href = new URL(p.url, root).href + (part ? "#" + part.id : "");
    const title = document.createElement("b");
    title.textContent = p.title + (part ? " › " + part.title : "");
    link.append(title, extract(p, typed, words));
    return link;
  };

  // The text around the words, which are marked.
  const extract = (p, typed, words) => {
    const span = document.createElement("span");
    const hit = [typed, ...words].map((w) => p.lower.indexOf(w)).find((at) => at >= 0) ?? 0;
    const from = hit < 80 ? 0 : p.text.lastIndexOf(" ", hit - 60) + 1;
    const text = (from > 0 ? "… " : "") + p.text.slice(from, from + 180).replace(/\s+/g, " ") + " …";
    const any = new RegExp("(" + words.map((w) => w.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|") + ")", "giu");
    text.split(any).forEach((piece, i) => {
      const mark = document.createElement("mark");
      mark.textContent = piece;
      span.append(i % 2 ? mark : piece);
    });
    return span;
  };

  input.addEventListener("focus", load);
  input.addEventListener("input", () => { load(); show(); });
  input.form.addEventListener("submit", (e) => {
    e.preventDefault();
    found.querySelector("a")?.click();
  });
  const close = () => { input.value = ""; show(); };
  document.addEventListener("keydown", (e) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const inside = document.activeElement === input || at >= 0;
    if (e.key === "/" && !inside) {
      e.preventDefault();
      input.focus();
    } else if (e.key === "Escape" && !found.hidden) {
      close();
      input.focus();
    } else if (inside && links.length && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
      e.preventDefault();
      const to = at + (e.key === "ArrowDown" ? 1 : -1);
      (to < 0 ? input : links[Math.min(to, links.length - 1)]).focus();
    }
  });
  document.addEventListener("click", (e) => {
    if (!found.hidden && !found.contains(e.target) && e.target !== input) close();
  });
})();
