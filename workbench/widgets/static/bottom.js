// The row of tabs below the views. The open tab's panel is a widget of its own.
export default (() => {
  function render({ model, el }) {
    const tidy = cleaner();
    const root = build("div", { class: "cw cw-bottom-bar", role: "group", "aria-label": "More views" });
    const buttons = model.get("tabs").map(([name, label]) => build("button", { type: "button", "data-tab": name, text: label }));
    const before = build("button", { type: "button", class: "cw-by", "data-by": -1 });
    const after = build("button", { type: "button", class: "cw-by", "data-by": 1 });
    const status = build("span", { class: "cw-quiet", role: "status" });
    root.append(...buttons, status, before, after);

    function draw() {
      const now = model.get("tab"), unit = model.get("unit");
      for (const button of buttons) button.setAttribute("aria-expanded", String(button.dataset.tab === now));
      before.hidden = after.hidden = !now || !unit;
      setText(before, `◂ ${unit}`);
      setText(after, `${unit} ▸`);
      before.setAttribute("aria-label", `select the ${unit} before`);
      after.setAttribute("aria-label", `select the next ${unit}`);
      setText(status, now ? model.get("status") : "");
    }
    function open(name) {
      model.set("tab", model.get("tab") === name ? "" : name);
      model.save_changes();
      draw();
    }
    tidy.on(root, "click", (event) => {
      const target = event.target.closest("button");
      if (!target) return;
      if (target.dataset.tab) open(target.dataset.tab);
      else model.send({ type: "step", by: Number(target.dataset.by) });
    });
    ownKeys(root, tidy);
    for (const trait of ["tab", "unit", "status"]) tidy.model(model, `change:${trait}`, draw);
    draw();
    // A figure is drawn by plotly, which knows no CSS variables: its colours come from the kernel.
    const theme = () => {
      const dark = document.body.dataset.jpThemeLight === "false";
      if (dark !== model.get("dark")) { model.set("dark", dark); model.save_changes(); }
    };
    onTheme(tidy, theme);
    theme();
    el.append(root);
    // A figure cannot measure itself before it stands in the page; this row is as wide as it is.
    const measure = afterPause(100, () => {
      const width = Math.floor(root.clientWidth);
      if (width > 0 && Math.abs(width - model.get("width")) > 2) { model.set("width", width); model.save_changes(); }
    });
    const watch = new ResizeObserver(() => measure.ask());
    watch.observe(root);
    tidy.add(() => { watch.disconnect(); measure.stop(); });
    return () => tidy.run();
  }
  return { render };
})();
