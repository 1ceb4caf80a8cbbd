// The page: what is typed goes to the compiler, what it says to the editor and the views.
'use strict';

const kPause = 200;        // ms without a key until the compiler is asked
const kFields = ['parameters', 'bytes', 'machine'];
const kFirst = 'allreduce_2shot';
let programs = [], name = '', waiting = 0, linked = '', answered = false;

const state = () => ({name, text: text.value, parameters: at('parameters').value,
  bytes: at('bytes').value, machine: at('machine').value});

function say(message) { at('said').textContent = message; }

function verdict(kind, message) {
  at('verdict').className = kind;
  at('verdict').textContent = message;
}

/// What is to be done with each part of an answer (tools/playground/answer.h).
const kTake = {
  library: (part) => {
    programs = part.programs;
    at('library').replaceChildren(new Option('your own', ''),
        ...programs.map((p) => Object.assign(new Option(p.name, p.name), {title: p.about})));
    at('machine').append(...part.machines.map((each) => new Option(each, each)));
  },
  diagnostics: (part) => {
    underline(part.list);
    listDiagnostics(part.list);
  },
  verdict: (part) => {
    verdict(part.proved ? 'proved' : 'refused', part.text);
    if (!part.proved) {
      showWhy('timeline', 'A timeline needs a program that is proved.');
      showText('explained', 'An explanation needs a program that is proved.');
    }
  },
  picture: (part) => 'html' in part ? showPage('picture', part.html) : showWhy('picture', part.message),
  timeline: (part) => {
    if ('html' in part) showPage('timeline', part.html);
    else showWhy('timeline', part.message);
    showText('explained', part.text ?? part.message);
  },
  ir: (part) => showText('ir', part.text),
  patch: (part) => {
    at('patch_title').textContent = 'Proved with a change: ' + part.title;
    at('patch_take').onclick = () => setText(part.text);
    at('patch').hidden = false;
  },
  error: (part) => {
    kTake.diagnostics({list: []});
    verdict('refused', part.message);
    answered = true;
  },
  stopped: (part) => {
    verdict('refused', 'The compiler has stopped: ' + part.message + '. Fewer ranks, thread blocks or ' +
        'instances take less.');
    answered = true;
  },
  end: () => { answered = true; },
};

const service = new Service((part) => kTake[part.part](part));

function check() {
  answered = false;
  at('patch').hidden = true;
  age(kViews);
  service.ask({ask: 'program', ...state(), name: (name || 'program') + '.mscl'});
  writeLink();
}

/// After a pause of the keys. Until then marks stay where they were, which is not where they belong.
function changed() {
  answered = false;
  number();
  clearTimeout(waiting);
  waiting = setTimeout(check, kPause);
}

function setText(content) {
  text.value = content;
  changed();
}

async function writeLink() {
  const packed = await pack(state());
  if (packed === linked) return;
  linked = packed;
  location.replace('#' + packed);
}

async function readLink() {
  const fragment = location.hash.slice(1);
  if (fragment === '' || fragment === linked) return false;
  try {
    const held = await unpack(fragment);
    linked = fragment;
    name = held.name;
    text.value = held.text;
    for (const field of kFields) at(field).value = held[field];
  } catch (error) {
    say('This link holds no program: ' + error.message);
    return false;
  }
  at('library').value = programs.some((p) => p.name === name && p.text === text.value) ? name : '';
  return true;
}

function open(chosen) {
  const program = programs.find((each) => each.name === chosen);
  if (!program) return;
  name = program.name;
  at('library').value = name;
  at('parameters').value = '';
  setText(program.text);
}

async function copyLink() {
  await writeLink();
  try {
    await navigator.clipboard.writeText(location.href);
    say('The link is copied; it holds the program.');
  } catch {
    say('Copy the address of this page: it holds the program.');
  }
}

text.addEventListener('input', () => {
  at('library').value = '';
  changed();
});
for (const field of kFields) at(field).addEventListener('input', changed);
at('library').addEventListener('change', () => open(at('library').value));
at('copy').addEventListener('click', copyLink);
addEventListener('hashchange', async () => { if (await readLink()) changed(); });

/// The library first, which the compiler holds; then what the link holds, or a program to start with.
async function begin() {
  try {
    await service.module;
  } catch (error) {
    verdict('refused', 'This browser cannot run the compiler: ' + error.message);
    return;
  }
  const take = kTake.end;
  kTake.end = async () => {
    kTake.end = take;
    if (await readLink()) changed();
    else open(kFirst);
  };
  service.ask({ask: 'library'});
}
begin();
