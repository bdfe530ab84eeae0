// The note, the diff, why, what is lost, and the checks. Every text is set as text; only the open tab's content is here.
export default (() => {
  const TABS = [["note", "Note"], ["diff", "Diff"], ["why", "Why"], ["lost", "Lost"], ["checks", "Checks"]];
  const GLYPHS = { kept: "●", edited: "◆", summarized: "◐", dropped: "○", note: "✚", added: "✚" };

  function render({ model, el }) {
    const tidy = cleaner();
    const root = build("div", { class: "cw cw-side" });
    const id = `cw-${Math.random().toString(36).slice(2)}`;
    const bar = build("div", { class: "cw-tabs", role: "tablist", "aria-label": "About this selection" });
    const panel = build("div", { class: "cw-panel", role: "tabpanel", id, tabindex: 0 });
    const tabs = TABS.map(([name, label]) => build("button", { type: "button", role: "tab", "aria-controls": id, "data-tab": name, text: label }));
    bar.append(...tabs);
    root.append(bar, panel);

    function open(name) {
      model.set("tab", name);
      model.save_changes();
      drawTabs();
    }
    function go(index) {
      if (index < 0) return;
      model.set("selected", index);
      model.save_changes();
    }
    function link(index, text) {
      return index < 0 ? build("span", { text }) : build("button", { type: "button", class: "cw-link", "data-go": index, text });
    }
    function drawTabs() {
      const now = model.get("tab"), alarms = model.get("alarms");
      for (const tab of tabs) {
        const on = tab.dataset.tab === now;
        tab.setAttribute("aria-selected", String(on));
        tab.tabIndex = on ? 0 : -1;
        if (tab.dataset.tab === "checks") {
          setText(tab, alarms > 0 ? `Checks ${count(alarms)}` : alarms === 0 ? "Checks ✓" : "Checks");
          tab.classList.toggle("cw-bad", model.get("broken") > 0);
        }
      }
      panel.setAttribute("aria-label", TABS.find(([name]) => name === now)[1]);
    }

    const whyParts = ({ title, lines }) => [build("p", { class: "cw-quiet cw-why-title", text: title }), ...lines.map((text) => build("p", { class: "cw-why-text", text }))];

    function note({ notes, more, none }, why) {
      const parts = none ? [build("p", { class: "cw-quiet", text: none })] : [];
      for (const item of notes) {
        parts.push(build("p", { class: "cw-quiet cw-note-head", text: item.head }));
        if (item.flag) parts.push(build("p", { class: "cw-bad cw-note-flag", text: item.flag }));
        parts.push(build("pre", { class: "cw-note", tabindex: 0, "aria-label": "text of the note", text: item.text }));
        if (item.more) parts.push(build("p", { class: "cw-quiet", text: `and ${count(item.more)} more characters` }));
      }
      if (more) parts.push(build("p", { class: "cw-quiet", text: `and ${count(more)} more notes` }));
      return [...parts, ...whyParts(why)];
    }
    function diff({ head, rows, more }) {
      const list = build("ul", { class: "cw-runs" });
      for (const row of rows) {
        list.append(build("li", { class: `cw-run cw-is-${row.fate}` },
          build("span", { class: "cw-sign", text: GLYPHS[row.fate], title: row.fate }), link(row.go, row.what),
          build("span", { class: "cw-quiet", text: row.fate === row.what ? "" : row.fate }), build("span", { class: "cw-run-text", text: row.text }), build("span", { class: "cw-num", text: row.tokens })));
      }
      return [build("p", { class: "cw-quiet cw-diff-head", text: head }), list, more ? build("p", { class: "cw-quiet", text: `and ${count(more)} more runs` }) : ""];
    }
    function why(about, log) {
      const list = build("ol", { class: "cw-log", start: log.start + 1 });
      for (const [text, messages, first] of log.rows) {
        list.append(build("li", {}, build("span", { text: `${text} ` }), messages ? link(first, messages === 1 ? `#${first}` : `${count(messages)} messages`) : ""));
      }
      const pages = build("p", { class: "cw-pages cw-quiet" });
      if (log.total > log.size) {
        const before = build("button", { type: "button", class: "cw-link", "data-page": log.start - log.size, text: "earlier", disabled: log.start === 0 });
        const after = build("button", { type: "button", class: "cw-link", "data-page": log.start + log.size, text: "later", disabled: log.start + log.size >= log.total });
        pages.append(before, ` ${count(log.start + 1)}–${count(log.start + log.rows.length)} of ${count(log.total)} `, after);
      }
      return [...whyParts(about), build("p", { class: "cw-quiet", text: log.total ? "Decisions, in order" : "No decision was needed." }), list, pages];
    }
    // The verdicts in one line, then what is wrong by rule. What began closed stays as the reader left it.
    const opened = new Map();
    function checks({ own, providers, groups }) {
      const line = build("p", { class: "cw-verdicts" });
      for (const [name, refused, fresh] of providers) {
        const says = refused ? `would refuse this list${fresh ? "" : ", as it was recorded"}` : "would take this list";
        line.append(build("span", { class: `cw-verdict${name === own ? " cw-own" : ""}`, title: `${name} ${says}` },
          build("span", { text: name }), build("span", { class: fresh && (name === own || !own) ? "cw-bad" : refused ? "" : "cw-fine", text: refused ? count(refused) : "✓" })));
      }
      const parts = [line];
      for (const { title, open: first, count: number, rules } of groups) {
        const inner = rules.flatMap(rule);
        if (!title) { parts.push(...inner); continue; }
        const box = build("details", { class: "cw-group", open: opened.get(title) ?? first }, build("summary", {}, build("span", { text: title }), build("span", { class: "cw-quiet", text: ` ${count(number)}` })), ...inner);
        box.addEventListener("toggle", () => opened.set(title, box.open));
        parts.push(box);
      }
      if (!groups.length) parts.push(build("p", { class: "cw-quiet", text: "Nothing that a provider would refuse was found." }));
      return parts;
    }
    function rule([name, sentence, number, rows, more]) {
      const list = build("ul", { class: "cw-findings" }, ...rows.map(([text, index]) => build("li", {}, link(index, text))));
      if (more) list.append(build("li", { class: "cw-quiet", text: `and ${count(more)} more` }));
      return [build("p", { class: "cw-rule" }, build("span", { class: "cw-rule-name", text: name }), build("span", { class: "cw-quiet", text: number > 1 ? ` ${count(number)}` : "" }), build("span", { class: "cw-quiet cw-says", text: sentence })), list];
    }

    const lost = lostView(link, tidy, (turn) => model.send({ type: "cut", turn }));
    let drawn = null;
    function draw() {
      const content = model.get("content");
      drawTabs();
      if (!content.tab) return;
      const kept = drawn === content.tab ? panel.scrollTop : 0;
      let parts;
      if (content.problem !== undefined) parts = [build("p", { class: "cw-bad cw-problem", text: content.problem })];
      else if (content.tab === "note") parts = note(content.note, content.why);
      else if (content.tab === "diff") parts = diff(content.diff);
      else if (content.tab === "why") parts = why(content.why, content.log);
      else if (content.tab === "lost") parts = lost.parts(content.lost);
      else parts = checks(content.checks);
      // What stays (a slider that is being moved) is not touched: taken out and put back it would lose the focus.
      for (const child of [...panel.childNodes]) if (!parts.includes(child)) child.remove();
      if (panel.firstChild) panel.append(...parts.slice(1));
      else panel.replaceChildren(...parts);
      panel.scrollTop = kept;
      panel.dataset.tab = drawn = content.tab;
    }

    tidy.on(bar, "click", (event) => { const tab = event.target.closest("[data-tab]"); if (tab) open(tab.dataset.tab); });
    tidy.on(bar, "keydown", (event) => {
      const at = TABS.findIndex(([name]) => name === model.get("tab"));
      const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: TABS.length - 1 }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      const tab = tabs[(next + TABS.length) % TABS.length];
      open(tab.dataset.tab);
      tab.focus();
    });
    tidy.on(panel, "click", (event) => {
      const target = event.target.closest("[data-go], [data-page]");
      if (!target) return;
      if (target.dataset.go !== undefined) go(Number(target.dataset.go));
      else model.send({ type: "page", start: Number(target.dataset.page) });
    });
    ownKeys(root, tidy);
    for (const trait of ["content", "alarms", "broken", "tab"]) tidy.model(model, `change:${trait}`, draw);
    draw();
    el.append(root);
    return () => tidy.run();
  }
  return { render };
})();
