"use strict";
(function () {
  // Without scripts the page is whole; they add a filter and sorting.
  const table = document.getElementById("tasks");
  if (!table) return;
  const rows = [...table.tBodies[0].rows];
  const figures = [...document.querySelectorAll("figure.curve")];
  const input = document.getElementById("filter"), shown = document.getElementById("shown");
  const texts = rows.map((row) => row.textContent.toLowerCase());
  document.querySelector(".tools").hidden = rows.length < 8;

  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const match = (text) => words.every((word) => text.includes(word));
    let count = 0;
    rows.forEach((row, i) => { row.hidden = !match(texts[i]); count += !row.hidden; });
    figures.forEach((f) => { f.hidden = !match(f.dataset.name.toLowerCase()); });
    shown.value = words.length ? count + " of " + rows.length : "";
  });

  const value = (row, column) => {
    const cell = row.cells[column], number = cell.dataset.v;
    return number === undefined ? cell.textContent : number === "" ? -Infinity : Number(number);
  };
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const sign = down ? -1 : 1;
      rows.sort((a, b) => {
        const x = value(a, column), y = value(b, column);
        return sign * (typeof x === "number" && typeof y === "number" ? x - y
          : String(x).localeCompare(String(y), "en", { numeric: true }));
      });
      table.tBodies[0].append(...rows);
    });
  });
}());
