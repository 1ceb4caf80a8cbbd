// The right side: tabs, and pages of the compiler's in frames that can reach nothing of this one.
'use strict';

const kViews = ['picture', 'timeline', 'explained', 'ir'];
const frames = {picture: {drawn: 0, error: ''}, timeline: {drawn: 0, error: ''}};

/// Says to this page what a frame has drawn, or what went wrong in it. A frame that is not to be seen
/// may have no size while it is loaded; what has drawn by it then draws again.
const kReport = `<script>
addEventListener('error', (event) => parent.postMessage({error: event.message}, '*'));
addEventListener('load', () => new ResizeObserver(() => {
  dispatchEvent(new Event('resize'));
  requestAnimationFrame(() => requestAnimationFrame(() => parent.postMessage({
    drawn: document.querySelectorAll('.box').length || Number(document.querySelector('canvas')?.dataset.drawn ?? 0)
  }, '*')));
}).observe(document.documentElement));
</${'script'}>`;

const frameOf = (view) => at(view).querySelector('iframe');
const kTitles = {picture: 'Picture of the plan', timeline: 'Timeline of a call'};

function showTab(view) {
  for (const each of kViews) {
    const tab = at('tab_' + each), chosen = each === view;
    tab.setAttribute('aria-selected', chosen);
    tab.tabIndex = chosen ? 0 : -1;
    at(each).classList.toggle('shown', chosen);
  }
}

/// What is shown is of an earlier text, until the compiler has more to say.
function age(views) {
  for (const view of views) at(view).classList.add('old');
}

/// A new frame each time: one that gets another page adds to the history of this one.
function showPage(view, html) {
  const frame = document.createElement('iframe');
  frame.title = kTitles[view];
  frame.sandbox = 'allow-scripts';
  frame.srcdoc = html.replace('<head>', () => '<head>' + kReport);
  frames[view] = {drawn: 0, error: ''};
  at(view).replaceChildren(frame);
  at(view).classList.remove('old');
}

/// Why there is nothing to show.
function showWhy(view, message) {
  const why = document.createElement('p');
  why.className = 'why';
  why.textContent = message;
  at(view).replaceChildren(why);
  at(view).classList.remove('old');
}

function showText(view, content) {
  at(view).querySelector('pre').textContent = content;
  at(view).classList.remove('old');
}

for (const view of kViews) at('tab_' + view).addEventListener('click', () => showTab(view));
at('tabs').addEventListener('keydown', (event) => {
  const step = {ArrowRight: 1, ArrowLeft: kViews.length - 1}[event.key];
  if (!step) return;
  const now = kViews.findIndex((view) => at('tab_' + view).getAttribute('aria-selected') === 'true');
  const next = kViews[(now + step) % kViews.length];
  showTab(next);
  at('tab_' + next).focus();
});
addEventListener('message', (event) => {
  const view = Object.keys(frames).find((each) => frameOf(each)?.contentWindow === event.source);
  if (!view) return;
  if (event.data?.drawn !== undefined) frames[view].drawn = Number(event.data.drawn);
  if (event.data?.error === undefined) return;
  frames[view].error = String(event.data.error);
  say('Something went wrong in the ' + view + ': ' + frames[view].error);
});
showTab('picture');
