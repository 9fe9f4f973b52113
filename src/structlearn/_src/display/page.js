"use strict";
// Tables are sorted by the buttons in their heads: numbers by size, words by name.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      const order = x !== "" && y !== "" && !isNaN(x) && !isNaN(y) ? x - y : x.localeCompare(y);
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows);
  }));
}
// A text above a table leaves the rows that hold it.
for (const input of document.querySelectorAll("input.filter")) {
  const block = input.closest(".block");
  const rows = [...block.querySelectorAll("tbody tr")];
  const status = block.querySelector(".status");
  const show = () => {
    const wanted = input.value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    status.textContent = `${shown} of ${rows.length} rows`;
  };
  input.addEventListener("input", show);
  show();
}
// One of many pictures at a time: buttons, a list, or the arrow keys.
for (const stepper of document.querySelectorAll(".stepper")) {
  const steps = [...stepper.querySelectorAll(".step")];
  const list = stepper.querySelector("select");
  const show = at => {
    const chosen = (at + steps.length) % steps.length;
    steps.forEach((step, i) => { step.hidden = i !== chosen; });
    list.value = String(chosen);
  };
  list.addEventListener("change", () => show(Number(list.value)));
  stepper.querySelector(".back").addEventListener("click", () => show(Number(list.value) - 1));
  stepper.querySelector(".next").addEventListener("click", () => show(Number(list.value) + 1));
  stepper.addEventListener("keydown", event => {
    if (event.target === list) return;  // the list has arrow keys of its own
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (move) show(Number(list.value) + move);
  });
  show(0);
}
