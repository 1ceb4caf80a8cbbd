// The compiler as a service of the page: one request at a time. A new one ends the worker of one that
// is not answered yet.
'use strict';

/// The compiled module: base64 of what gzip made of it (compiler.js).
async function loadCompiler() {
  const packed = Uint8Array.from(atob(kCompiler), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
}

class Service {
  /// `take` gets each part of the answer to the last request.
  constructor(take) {
    this.take = take;
    this.module = loadCompiler();
    this.worker = null;
    this.number = 0;   // of the last request
    this.busy = false;
  }

  async ask(request) {
    const number = ++this.number;
    const module = await this.module;
    if (number !== this.number) return;
    if (this.busy) this.stop();
    const fresh = this.worker === null;
    if (fresh) this.start();
    this.busy = true;
    this.worker.postMessage({number, request, module: fresh ? module : undefined});
  }

  start() {
    const url = URL.createObjectURL(new Blob(['(' + compilerWorker + ')()'], {type: 'text/javascript'}));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.worker.onmessage = ({data}) => {
      if (data.number !== this.number) return;
      if (['end', 'error', 'stopped'].includes(data.part.part)) this.busy = false;
      this.take(data.part);
    };
    this.worker.onerror = (event) => {
      this.stop();
      this.take({part: 'stopped', message: event.message});
    };
  }

  stop() {
    this.worker.terminate();
    this.worker = null;
    this.busy = false;
  }
}
