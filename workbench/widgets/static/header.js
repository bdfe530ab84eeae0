// One line about the transcript; below it, on demand, what was skipped.
export default (() => {
  function render({ model, el }) {
    const tidy = cleaner();
    const root = build("div", { class: "cw cw-header", role: "region", "aria-label": "Transcript" });
    const name = build("b", { class: "cw-file" });
    const words = build("span", { class: "cw-quiet" });
    const tokens = build("b", { class: "cw-total" });
    const problem = build("span", { class: "cw-problem cw-bad", role: "status" });
    const task = build("span", { class: "cw-task cw-quiet", role: "status" });
    const bar = build("progress", { max: 1, "aria-label": "progress" });
    const act = build("button", { type: "button", class: "cw-button cw-act" });
    const open = build("button", { type: "button", class: "cw-skipped", "aria-expanded": "false" });
    const list = build("ul", { class: "cw-diagnostics", tabindex: 0, "aria-label": "what was skipped", hidden: true });
    root.append(build("div", { class: "cw-top" }, build("div", { class: "cw-facts" }, name, words, problem, build("span", { class: "cw-work" }, task, bar, act)), open), list);

    function facts() {
      const { name: title, words: facts, tokens: total, counter, range } = model.get("facts");
      name.textContent = title;
      name.title = title;
      tokens.textContent = total;
      words.replaceChildren(`${facts.join(" · ")} · `, tokens, ` tokens (${counter})`);
      words.title = range;
      problem.textContent = model.get("problem");
      problem.hidden = !problem.textContent;
    }
    function work() {
      const part = model.get("progress");
      task.textContent = model.get("task");
      act.textContent = model.get("action");
      bar.hidden = part < 0;
      if (part >= 0) bar.value = part;
      task.hidden = !task.textContent;
      act.hidden = !act.textContent;
    }
    function skipped() {
      const { label, bad, rows, more } = model.get("skipped");
      open.hidden = !label;
      open.classList.toggle("cw-bad", bad);
      open.textContent = `${label} ${list.hidden ? "▾" : "▴"}`;
      open.setAttribute("aria-expanded", String(!list.hidden));
      const items = rows.map(([line, code, text]) => build("li", {}, build("span", { class: "cw-num", text: line === null ? "" : `line ${count(line)}` }), build("code", { text: code }), build("span", { text })));
      if (more) items.push(build("li", { class: "cw-quiet" }, build("span"), build("span"), build("span", { text: `and ${count(more)} more` })));
      list.replaceChildren(...items);
    }
    tidy.on(open, "click", () => { list.hidden = !list.hidden; skipped(); });
    tidy.on(act, "click", () => model.send({ type: "act" }));
    tidy.on(root, "keydown", (event) => { if (event.key === "Escape" && !list.hidden) { list.hidden = true; skipped(); open.focus(); } });
    ownKeys(root, tidy);
    for (const trait of ["facts", "problem"]) tidy.model(model, `change:${trait}`, facts);
    for (const trait of ["progress", "task", "action"]) tidy.model(model, `change:${trait}`, work);
    tidy.model(model, "change:skipped", skipped);
    facts();
    work();
    skipped();
    el.append(root);
    return () => tidy.run();
  }
  return { render };
})();
