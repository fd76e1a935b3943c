/* Runs inside a page of attune report: accessibility as far as a program can tell. The body becomes
 * a list of findings, or "good: ...". */
"use strict";
addEventListener("load", () => {
  const wrong = [], all = (q) => [...document.querySelectorAll(q)];
  const say = (what, node) => wrong.push(what + ": " + (node ? node.outerHTML.slice(0, 120) : ""));
  const named = (n) => (n.getAttribute("aria-label") || (n.getAttribute("aria-labelledby") || "")
    .split(" ").map((id) => document.getElementById(id)).filter(Boolean)
    .map((o) => o.textContent).join(" ")).trim();

  if (document.documentElement.lang === "") say("no language");
  if (document.title.trim() === "") say("no title");
  if (all("main").length !== 1) say("not one main");
  let level = 0;
  for (const h of all("h1,h2,h3,h4,h5,h6")) {
    const now = Number(h.tagName[1]);
    if (now > level + 1) say("a heading skips a level", h);
    if (h.textContent.trim() === "") say("an empty heading", h);
    level = now;
  }
  if (all("h1").length !== 1) say("not one h1");
  const ids = new Set();
  for (const n of all("[id]")) {
    if (ids.has(n.id)) say("an id twice", n);
    ids.add(n.id);
  }
  for (const n of all("img,svg,[role=img]"))
    if (n.getAttribute("aria-hidden") !== "true" && named(n) === "" && !n.alt) say("no text for", n);
  for (const n of all("figure")) if (!n.querySelector("figcaption")) say("no caption", n);
  for (const n of all("th"))
    if (!["row", "col"].includes(n.scope)) say("no scope", n);
  for (const n of all("table"))
    if (!n.querySelector("tbody th[scope=row]")) say("rows without a header", n);
  for (const n of all("input"))
    if (n.labels.length === 0 && named(n) === "") say("no label", n);
  for (const n of all("button,a,summary"))
    if (n.textContent.trim() === "" && named(n) === "") say("no name", n);
  for (const n of all("[role=region],section"))
    if (named(n) === "") say("a region without a name", n);
  for (const n of all("*")) {
    const style = getComputedStyle(n);
    if (["auto", "scroll"].includes(style.overflowX) && n.scrollWidth > n.clientWidth &&
        n.tabIndex < 0) say("scrolls, but not by keyboard", n);
  }

  /* Contrast as WCAG 2 has it: 4.5 for text, 3 for what a bar or a line means. */
  const parse = (c) => (c.match(/[\d.]+/g) || []).map(Number);
  const luminance = (c) => {
    const [r, g, b] = c.slice(0, 3).map((v) => v / 255)
      .map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const behind = (n) => {
    for (; n; n = n.parentElement) {
      const c = parse(getComputedStyle(n).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  let texts = 0, least = 21;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let t = walk.nextNode(); t; t = walk.nextNode()) {
    const n = t.parentElement;
    if (t.data.trim() === "" || ["SCRIPT", "STYLE"].includes(n.tagName)) continue;
    const svg = n.closest("svg");
    const ink = parse(svg ? getComputedStyle(n).fill : getComputedStyle(n).color);
    const ratio = contrast(ink, behind(svg || n));
    texts++;
    least = Math.min(least, ratio);
    if (ratio < 4.5) say("contrast " + ratio.toFixed(2), n);
  }
  for (const n of all(".bar")) {
    const ratio = contrast(parse(getComputedStyle(n, "::before").backgroundColor), behind(n));
    if (ratio < 3) say("contrast of a bar " + ratio.toFixed(2), n);
  }
  for (const n of all(".key,.stack span")) {
    const ratio = contrast(parse(getComputedStyle(n).backgroundColor), behind(n.parentElement));
    if (ratio < 3) say("contrast of a bar " + ratio.toFixed(2), n);
  }
  for (const n of all("svg .best,svg .one,svg .final")) {
    const ratio = contrast(parse(getComputedStyle(n).stroke), behind(n.closest("svg")));
    if (ratio < 3) say("contrast of a line " + ratio.toFixed(2), n);
  }
  /* Nothing sticks out of the page sideways. */
  if (document.documentElement.scrollWidth > innerWidth + 1) say("wider than the window");
  const dark = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const text = wrong.length ? [...new Set(wrong)].slice(0, 20).join("\n")
    : "good: " + dark + ", " + texts + " texts, least contrast " + least.toFixed(2);
  document.documentElement.innerHTML = "<body></body>";
  document.body.textContent = "PAGE-CHECK\n" + text + "\nPAGE-END";
});
