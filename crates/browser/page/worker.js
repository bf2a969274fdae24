// The worker: it holds the WebAssembly module, and answers one question after the other.
"use strict";

let module = null;
// The start of the module; questions wait for it.
let started = null;

/** Bytes of a text in base64. */
function decoded(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function start(packed) {
  let last = 0;
  const progress = (now, finished, messages) => {
    const time = performance.now();
    if (time - last < 100) return;
    last = time;
    postMessage({ progress: { now, finished, messages } });
  };
  module = (await WebAssembly.instantiate(unlzma(decoded(packed)), { page: { progress } })).instance.exports;
}

/** Calls an export with a text as its input, and returns a copy of its output. */
function ask(name, text, ...numbers) {
  const bytes = new TextEncoder().encode(text);
  const at = module.input(bytes.length);
  new Uint8Array(module.memory.buffer, at, bytes.length).set(bytes);
  module[name](...numbers);
  const start = module.output();
  return module.memory.buffer.slice(start, start + module.output_length());
}

/** The message of a panic, which left the module in no state to go on. */
function panicked() {
  const start = module.panic_text();
  return new TextDecoder().decode(new Uint8Array(module.memory.buffer, start, module.panic_length()));
}

onmessage = async ({ data: { id, name, text, numbers, packed } }) => {
  try {
    if (packed) started = start(packed);
    await started;
    if (packed) {
      postMessage({ id });
      return;
    }
    const began = performance.now();
    const answer = ask(name, text ?? "", ...(numbers ?? []));
    postMessage({ id, answer, took: performance.now() - began }, [answer]);
  } catch (error) {
    const why = module && error instanceof WebAssembly.RuntimeError ? panicked() : "";
    postMessage({ id, failed: why || String(error) });
  }
};
