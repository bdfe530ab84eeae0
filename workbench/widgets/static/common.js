// Shared by every view: it stands before a view's own file in one module (workbench/widgets/assets.py).

const KINDS = ["system", "tools", "user", "assistant", "reasoning", "tool_call", "tool_result", "media", "note", "framing"];
const FATES = ["kept", "edited", "summarized", "dropped"];
const ROLES = ["system", "user", "assistant", "tool", "note"];

const words = (kind) => kind.replace("_", " ");
const count = (number) => number.toLocaleString("en-US").replace("-", "−");
const several = (messages) => `${count(messages)} message${messages === 1 ? "" : "s"}`;

// An element with a class and, as text only, its words.
function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

const setText = (element, text) => { if (element.textContent !== text) element.textContent = text; };

// Bytes of a binary trait or message buffer, aligned as the wanted array needs.
function numbers(buffer, Type) {
  if (!buffer) return new Type(0);
  const bytes = buffer instanceof ArrayBuffer ? new Uint8Array(buffer) : new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
  return new Type(bytes.slice().buffer);
}

// Four fates to a byte, the first in the lowest bits (wire.pack_fates).
function unpackFates(buffer, n) {
  const packed = numbers(buffer, Uint8Array), fates = new Uint8Array(n);
  for (let i = 0; i < n; i++) fates[i] = (packed[i >> 2] >> ((i & 3) * 2)) & 3;
  return fates;
}

// LEB128 (wire.varints).
function varints(buffer) {
  const bytes = numbers(buffer, Uint8Array), out = [];
  for (let i = 0, value = 0, unit = 1; i < bytes.length; i++) {
    value += (bytes[i] & 127) * unit;
    if (bytes[i] > 127) unit *= 128;
    else { out.push(value); value = 0; unit = 1; }
  }
  return out;
}

// At most one call per frame, however often it is asked for.
function frameGate(draw) {
  let asked = 0;
  return {
    ask() { if (!asked) asked = requestAnimationFrame(() => { asked = 0; draw(); }); },
    stop() { cancelAnimationFrame(asked); asked = 0; },
  };
}

// Calls once per pause: the last of a burst.
function afterPause(ms, run) {
  let timer = 0;
  return {
    ask() { clearTimeout(timer); timer = setTimeout(run, ms); },
    stop() { clearTimeout(timer); },
  };
}

// Everything that must be undone when a view goes.
function cleaner() {
  const undo = [];
  return {
    add(run) { undo.push(run); },
    on(target, type, listener, options) { target.addEventListener(type, listener, options); undo.push(() => target.removeEventListener(type, listener, options)); },
    model(model, type, listener) { model.on(type, listener); undo.push(() => model.off(type, listener)); },
    run() { for (const one of undo.splice(0)) one(); },
  };
}

// Lab's own shortcuts never fire from a view: the attribute is Lumino's, the rest is for other front ends.
function ownKeys(root, tidy) {
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  for (const type of ["keydown", "keyup", "keypress"]) tidy.on(root, type, (event) => event.stopPropagation());
}

function onTheme(tidy, changed) {
  const watch = new MutationObserver(changed);
  watch.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
  tidy.add(() => watch.disconnect());
}

// Requests to the kernel with an id each; a reply without an answer is an Error with the kernel's words.
function asker(model, tidy) {
  const waiting = new Map(), prefix = Math.random().toString(36).slice(2) + ":";
  let last = 0;
  tidy.model(model, "msg:custom", (reply, buffers) => {
    const mine = reply && waiting.get(reply.id);
    if (!mine) return;
    waiting.delete(reply.id);
    if (reply.ok) mine.done({ ...reply, buffers });
    else mine.fail(new Error(reply.error));
  });
  tidy.add(() => waiting.clear());
  return (ask, content) => new Promise((done, fail) => {
    const id = prefix + ++last;
    waiting.set(id, { done, fail });
    model.send({ ...content, ask, id });
  });
}

// An element with attributes and children; `text` is text only; an attribute that is null or false is left out.
function build(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") element.textContent = value;
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}
