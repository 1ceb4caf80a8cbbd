// The worker: runs the compiler, a WASI program, once for each request. Text of a function, as a page
// that comes from a disk may not load a worker from there.
'use strict';

function compilerWorker() {
  const kBadFile = 8, kNotThere = 52;  // WASI's errno: badf, nosys
  const kFine = 0;

  /// Says that the program ends itself.
  class Exit extends Error {}

  /// What WASI offers the program: standard streams, a clock, random bytes; no files.
  function system(input, output, complain) {
    let memory = null, taken = 0;
    const view = () => new DataView(memory.buffer);
    const bytes = (at, count) => new Uint8Array(memory.buffer, at, count);
    const pieces = (at, count) => Array.from({length: count}, (_, i) => bytes(
        view().getUint32(at + 8 * i, true), view().getUint32(at + 8 * i + 4, true)));
    const empty = (countAt, sizeAt) => {
      view().setUint32(countAt, 0, true);
      view().setUint32(sizeAt, 0, true);
      return kFine;
    };
    const calls = {
      args_sizes_get: empty,
      args_get: () => kFine,
      environ_sizes_get: empty,
      environ_get: () => kFine,
      clock_time_get: (clock, precision, at) => {
        const ms = clock === 0 ? Date.now() : performance.now();
        view().setBigUint64(at, BigInt(Math.round(ms * 1e6)), true);
        return kFine;
      },
      random_get: (at, count) => {
        for (let done = 0; done < count; done += 65536) {
          crypto.getRandomValues(bytes(at + done, Math.min(65536, count - done)));
        }
        return kFine;
      },
      fd_read: (fd, at, count, readAt) => {
        if (fd !== 0) return kBadFile;
        let read = 0;
        for (const piece of pieces(at, count)) {
          const part = input.subarray(taken, taken + piece.length);
          piece.set(part);
          taken += part.length;
          read += part.length;
        }
        view().setUint32(readAt, read, true);
        return kFine;
      },
      fd_write: (fd, at, count, writtenAt) => {
        if (fd !== 1 && fd !== 2) return kBadFile;
        let written = 0;
        for (const piece of pieces(at, count)) {
          (fd === 1 ? output : complain)(piece.slice());
          written += piece.length;
        }
        view().setUint32(writtenAt, written, true);
        return kFine;
      },
      fd_fdstat_get: (fd, at) => {
        if (fd > 2) return kBadFile;
        bytes(at, 24).fill(0);
        view().setUint8(at, 2);  // a character device
        return kFine;
      },
      fd_close: () => kFine,
      fd_prestat_get: () => kBadFile,  // no folder is open
      proc_exit: (code) => { throw new Exit(String(code)); },
    };
    return {calls, use: (exported) => { memory = exported; }};
  }

  /// Hands on what the program prints, line by line.
  function lines(take) {
    const decoder = new TextDecoder();
    let held = '';
    return (piece) => {
      held += decoder.decode(piece, {stream: true});
      for (let end; (end = held.indexOf('\n')) >= 0; held = held.slice(end + 1)) take(held.slice(0, end));
    };
  }

  async function run(module, request, number) {
    let complaints = '';
    const decoder = new TextDecoder();
    const wasi = system(new TextEncoder().encode(JSON.stringify(request)),
        lines((line) => postMessage({number, part: JSON.parse(line)})),
        (piece) => { complaints += decoder.decode(piece, {stream: true}); });
    const imports = {};
    for (const {module: from, name} of WebAssembly.Module.imports(module)) {
      imports[from] ??= {};
      imports[from][name] = wasi.calls[name] ?? (() => kNotThere);
    }
    try {
      const instance = await WebAssembly.instantiate(module, imports);
      wasi.use(instance.exports.memory);
      instance.exports._start();
    } catch (error) {
      if (error instanceof Exit && error.message === '0') return;
      postMessage({number, part: {part: 'stopped', message: complaints.trim() || String(error.message)}});
    }
  }

  let module = null;
  onmessage = ({data}) => {
    module = data.module ?? module;
    run(module, data.request, data.number);
  };
}
