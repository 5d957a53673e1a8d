"use strict";
(() => {
  // Values of knobs: one open at a time in a row; arrows move, Escape closes.
  const cells = (row) => [...row.querySelectorAll(".cell")];
  const show = (cell, open) => {
    const row = cell.closest("tbody");
    for (const other of cells(row)) {
      const on = open && other === cell;
      other.setAttribute("aria-expanded", on);
      document.getElementById(other.getAttribute("aria-controls")).hidden = !on;
    }
    row.querySelector(".opened").hidden = !open;
  };
  for (const cell of document.querySelectorAll(".cell")) {
    cell.addEventListener("click", () => show(cell, cell.getAttribute("aria-expanded") !== "true"));
    cell.addEventListener("keydown", (event) => {
      const row = cells(cell.closest("tbody"));
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step) {
        const next = row[row.indexOf(cell) + step];
        if (next) next.focus();
        event.preventDefault();
      } else if (event.key === "Escape") show(cell, false);
    });
  }
  const opened = () => {
    const cell = location.hash && document.getElementById(location.hash.slice(1));
    if (cell && cell.classList.contains("cell")) { show(cell, true); cell.focus(); }
  };
  addEventListener("hashchange", opened);
  opened();

  // Tables: by number where all cells are numbers, else by text; a second click turns the order around.
  // A cell that is no plain number says in data-by which number stands for it.
  const number = (text) => text === "" || text === "–" ? null : Number(text.replace(/,/g, "").match(/^-?\d+(\.\d+)?(e[+-]?\d+)?/)?.[0] ?? NaN);
  const value = (cell) => cell.dataset.by ?? cell.textContent.trim();
  const sort = (table, column, down) => {
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, place) => ({ row, place, text: value(row.cells[column]) }));
    const numeric = rows.every(({ text }) => !Number.isNaN(number(text)));
    const sign = down ? -1 : 1;
    rows.sort((a, b) => {
      let order;
      if (numeric) {
        const x = number(a.text), y = number(b.text);
        if (x === null || y === null) return (x === null) - (y === null) || a.place - b.place; // no number: last
        order = x - y;
      } else order = a.text < b.text ? -1 : a.text > b.text ? 1 : 0;
      return sign * order || a.place - b.place;
    });
    body.append(...rows.map(({ row }) => row));
  };
  for (const button of document.querySelectorAll("table.sortable .sort")) {
    button.addEventListener("click", () => {
      const head = button.closest("th"), table = head.closest("table");
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      sort(table, head.cellIndex, down);
    });
  }

  // The graph: what a box is tied to, and what it says.
  const note = document.getElementById("graphnote");
  const edges = [...document.querySelectorAll(".edge")];
  const light = (node) => {
    const near = new Set();
    for (const edge of edges) {
      const ends = edge.dataset.ends.split(" ");
      const on = node !== null && ends.includes(node.id);
      edge.classList.toggle("on", on);
      if (on) ends.forEach((end) => near.add(end));
    }
    for (const other of document.querySelectorAll(".node")) other.classList.toggle("on", near.has(other.id));
    note.textContent = node ? node.dataset.note : note.dataset.idle;
  };
  for (const node of document.querySelectorAll(".node")) {
    for (const type of ["mouseenter", "focus"]) node.addEventListener(type, () => light(node));
    for (const type of ["mouseleave", "blur"]) node.addEventListener(type, () => light(null));
  }

  // On paper everything that a click opens is open.
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details.whole")) part.open = true; });
})();
