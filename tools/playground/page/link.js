// The link that holds a program: its JSON, deflated, in base64 with '-' and '_', as the fragment.
'use strict';

const kMaxInLink = 1 << 20;  // characters of what a link unfolds to: a small one could name a huge text

async function pack(state) {
  const stream = new Blob([JSON.stringify(state)]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

async function inflate(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'))
      .pipeThrough(new TextDecoderStream()).getReader();
  let all = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return all;
    all += value;
    if (all.length > kMaxInLink) throw new Error('it holds too much');
  }
}

/// What a link holds; throws if that is no program.
async function unpack(fragment) {
  const binary = atob(fragment.replaceAll('-', '+').replaceAll('_', '/'));
  const state = JSON.parse(await inflate(Uint8Array.from(binary, (c) => c.charCodeAt(0))));
  for (const key of ['name', 'text', 'parameters', 'bytes', 'machine']) {
    if (typeof state?.[key] !== 'string') throw new Error("it has no '" + key + "'");
  }
  return state;
}
