// The editor: a text area, and below its text the same text, transparent, with what is wrong
// underlined; line numbers; the list of what is wrong.
'use strict';

const at = (id) => document.getElementById(id);
const text = at('text'), marks = at('marks'), numbers = at('numbers');

/// Where a place of the compiler's (a line and a column, from 1, in bytes) is in the text.
function offsetOf(starts, line, column) {
  if (line > starts.length) return text.value.length;
  const begin = starts[line - 1], end = line < starts.length ? starts[line] - 1 : text.value.length;
  const encoded = new TextEncoder().encode(text.value.slice(begin, end));
  const before = new TextDecoder().decode(encoded.subarray(0, column - 1));
  return Math.min(begin + before.length, end);
}

function lineStarts() {
  const starts = [0];
  for (let i = 0; (i = text.value.indexOf('\n', i)) >= 0;) starts.push(++i);
  return starts;
}

/// What a diagnostic marks: [begin, end) in the text, at least a character; null without a place.
function rangeOf(diagnostic, starts) {
  if (!diagnostic.line) return null;
  const begin = offsetOf(starts, diagnostic.line, diagnostic.column);
  const end = offsetOf(starts, diagnostic.end_line ?? diagnostic.line, diagnostic.end_column ?? diagnostic.column);
  return [begin, Math.max(end, begin + 1)];
}

function mark(kind, content) {
  const element = document.createElement('mark');
  element.className = kind;
  element.textContent = content;
  return element;
}

/// Underlines what diagnostics mark; of two that overlap the first.
function underline(diagnostics) {
  const starts = lineStarts();
  const ranges = diagnostics.map((d) => ({range: rangeOf(d, starts), kind: d.severity}))
      .filter((each) => each.range !== null).sort((a, b) => a.range[0] - b.range[0]);
  const parts = [];
  let done = 0;
  for (const {range: [begin, end], kind} of ranges) {
    if (begin < done) continue;
    parts.push(text.value.slice(done, begin), mark(kind, text.value.slice(begin, end)));
    done = end;
  }
  // What a text area shows below its last line has to be there, too.
  marks.replaceChildren(...parts, text.value.slice(done) + '\n');
  scrollAlong();
}

function listDiagnostics(diagnostics) {
  at('diagnostics').replaceChildren(...diagnostics.map((d) => {
    const row = document.createElement('li'), button = document.createElement('button');
    const head = document.createElement('b');
    row.className = d.severity;
    head.textContent = (d.line ? d.line + ':' + d.column + ' ' : '') + d.severity;
    button.type = 'button';
    button.append(head, ': ' + d.message);
    for (const note of d.notes ?? []) {
      const small = document.createElement('small');
      small.textContent = (note.line ? note.line + ':' + note.column + ' ' : '') + note.message;
      button.append(small);
    }
    button.addEventListener('click', () => select(d));
    row.append(button);
    return row;
  }));
}

/// Selects what a diagnostic marks.
function select(diagnostic) {
  const range = rangeOf(diagnostic, lineStarts());
  if (range === null) return;
  text.focus();
  text.setSelectionRange(...range);
}

function scrollAlong() {
  marks.scrollTop = numbers.scrollTop = text.scrollTop;
  marks.scrollLeft = text.scrollLeft;
}

function number() {
  const count = lineStarts().length;
  numbers.textContent = Array.from({length: count}, (_, i) => i + 1).join('\n') + '\n\n';
}

text.addEventListener('scroll', scrollAlong);
