"""Opens docs/playground in headless Chromium, from the disk: what is wrong is underlined as one types,
what is right is proved and drawn, and a link holds the program.

    browser_test.py FOLDER COMPILER [PICTURE]

COMPILER: the same compiler for this machine, whose answers must be the same; PICTURE: where to put a
PNG of the page.
"""

import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "timeline"))

from chromium import Chromium, find_chromium  # noqa: E402 (its folder is found above)

PATIENCE = 300  # seconds: only what hangs meets this, however busy the machine is


def check(what, happened):
    print(("passed: " if happened else "FAILED: ") + what)
    return bool(happened)


def wait_for(page, expression):
    """Waits until an expression is true in the page; False if it does not come to that."""
    end = time.monotonic() + PATIENCE
    while not page.value("Boolean(" + expression + ")"):
        if time.monotonic() > end:
            print("waited in vain for: " + expression)
            return False
        time.sleep(0.1)
    return True


def type_over(page, old, new):
    """Replaces a word of the program as if it were typed."""
    page.value(f"""(() => {{
      const begin = text.value.indexOf({old!r});
      if (begin < 0) throw new Error('not there');
      text.focus();
      text.setSelectionRange(begin, begin + {len(old)});
      document.execCommand('insertText', false, {new!r});
    }})()""")


def verdict(page):
    return page.value("at('verdict').textContent")


def underlined(page):
    return page.value("[...marks.querySelectorAll('mark')].map((each) => each.textContent)")


def above_text(page, word):
    """Does the mark lie where the text area shows its word? The area's own measure of a character says."""
    return page.value("""(() => {
      const mark = marks.querySelector('mark').getBoundingClientRect(), area = text.getBoundingClientRect();
      const before = text.value.slice(0, text.value.indexOf('%s')), line = before.split('\\n').length - 1;
      const column = before.length - before.lastIndexOf('\\n') - 1, style = getComputedStyle(text);
      const pen = document.createElement('canvas').getContext('2d');
      pen.font = style.fontSize + ' ' + style.fontFamily;
      const x = area.left + parseFloat(style.paddingLeft) + column * pen.measureText('0').width - text.scrollLeft;
      const y = area.top + parseFloat(style.paddingTop) + line * parseFloat(style.lineHeight) - text.scrollTop;
      return Math.abs(mark.left - x) < 3 && Math.abs(mark.top - y) < 8;
    })()""" % word)


def check_right(page):
    """A program of the library, with which the page begins."""
    fine = check("the compiler answers", wait_for(page, "answered"))
    fine &= check("a right program is proved: " + verdict(page), verdict(page).startswith("proved: "))
    fine &= check("nothing is underlined", underlined(page) == [])
    fine &= check("its picture is drawn", wait_for(page, "frames.picture.drawn > 2"))
    # A browser draws no frame that is not to be seen.
    page.value("at('tab_timeline').click()")
    fine &= check("its timeline is drawn", wait_for(page, "frames.timeline.drawn > 50"))
    page.value("at('tab_picture').click()")
    fine &= check("both without errors", page.value("frames.picture.error + frames.timeline.error") == "")
    fine &= check("the explanation has a critical path",
                  "critical path" in page.value("at('explained').textContent"))
    fine &= check("the IR is there", page.value("at('ir').textContent").startswith("ir 1"))
    return fine & check("there are programs to choose from", page.value("at('library').options.length") > 40)


def check_typing(page):
    """An error is underlined as one types, and gone when it is."""
    type_over(page, "signal up[p]", "signl up[p]")
    fine = check("an error is found as one types", wait_for(page, "marks.querySelector('mark')"))
    fine &= check("and underlined: " + str(underlined(page)), underlined(page) == ["signl"])
    fine &= check("where the word stands", above_text(page, "signl"))
    fine &= check("the verdict says so", wait_for(page, "answered") and verdict(page) == "refused")
    said = page.value("at('diagnostics').innerText")
    fine &= check("the list says what to do: " + repr(said), "did you mean 'signal'?" in said)
    page.value("at('diagnostics').querySelector('button').click()")
    fine &= check("a click there selects it",
                  page.value("text.value.slice(text.selectionStart, text.selectionEnd)") == "signl")
    fine &= check("a change is offered", wait_for(page, "!at('patch').hidden"))
    page.value("at('patch_take').click()")
    fine &= check("with which it is proved",
                  wait_for(page, "answered && at('verdict').className === 'proved'"))
    return fine & check("and nothing is underlined", underlined(page) == [])


def check_umlauts(page):
    """Columns of the compiler's count bytes; the page's do not."""
    page.value("setText('# Übung ÄÖÜ 🙂\\nprogram a\\nparam R = 2  # ä\\nlet ä = 3\\n')")
    fine = check("text beyond ASCII is understood", wait_for(page, "answered"))
    return fine & check("and marked in its line: " + str(underlined(page)), "ä" in "".join(underlined(page)))


def check_refused(page):
    """A program that compiles and is wrong has a picture, and no timeline."""
    page.value("open('allreduce_2shot')")
    wait_for(page, "answered && at('verdict').className === 'proved'")
    type_over(page, "signal up[p]", "# signal up[p]")
    fine = check("a missing signal is refused",
                 wait_for(page, "answered && at('verdict').className === 'refused'"))
    return fine & check("the page says why there is no timeline",
                        page.value("at('timeline').textContent === 'A timeline needs a program that is proved.'"))


def check_fields(page):
    page.value("open('allgather_direct'), showTab('timeline')")
    fine = check("after a program that is refused, one that is proved is drawn",
                 wait_for(page, "answered && frames.timeline.drawn > 10"))
    page.value("at('parameters').value = 'R=2', at('bytes').value = '64K',"
               " at('machine').value = '8xH200', at('bytes').dispatchEvent(new Event('input'))")
    fine &= check("parameters, message and machine count", wait_for(
        page, "answered && at('explained').textContent.startsWith("
        "'allgather_direct: allgather of 64 KiB (f32) over 2 ranks, on 8xH200')"))
    page.value("at('parameters').value = 'R', at('parameters').dispatchEvent(new Event('input'))")
    fine &= check("a parameter without a value is refused", wait_for(
        page, "answered && at('verdict').textContent.includes('NAME=VALUE')"))
    page.value("at('parameters').value = 'R=2', at('parameters').dispatchEvent(new Event('input'))")
    return fine & check("and made right", wait_for(page, "answered && at('verdict').className === 'proved'"))


def check_too_much(page):
    """What takes more than a page has ends the compiler, not the page."""
    page.value("open('allreduce_2shot'), at('parameters').value = 'R=512 I=16', changed()")
    fine = check("too large a program is refused", wait_for(
        page, "answered && at('verdict').className === 'refused'"))
    print("  " + verdict(page))
    page.value("at('parameters').value = '', changed()")
    return fine & check("and the next one is compiled", wait_for(
        page, "answered && at('verdict').className === 'proved'"))


def ask(page, request):
    """The parts of an answer, as the page's compiler gives them."""
    return json.loads(page.value("""new Promise((done) => {
      const take = service.take, parts = [];
      service.take = (part) => {
        parts.push(part);
        if (!['end', 'error', 'stopped'].includes(part.part)) return;
        service.take = take;
        done(JSON.stringify(parts));
      };
      service.ask(%s);
    })""" % json.dumps(request)))


def check_same(page, compiler):
    """WebAssembly has 32 bits, no threads and no exceptions; all programs of the library come out alike."""
    differs = []
    programs = page.value("programs.map((each) => [each.name, each.text])")
    for name, text in programs:
        request = {"ask": "program", "name": name + ".mscl", "text": text, "bytes": "256K"}
        there = subprocess.run([compiler], input=json.dumps(request), capture_output=True, text=True, check=True)
        if ask(page, request) != [json.loads(line) for line in there.stdout.splitlines()]:
            differs.append(name)
    return check(f"{len(programs)} programs of the library come out as on this machine: " + str(differs),
                 len(programs) > 40 and not differs)


def check_link(browser, page, folder):
    page.value("setText(text.value + '\\n# mine ✓\\n')")
    wait_for(page, "answered && linked === location.hash.slice(1)")
    link, held = page.value("location.hash"), page.value("text.value")
    other = Chromium(browser, os.path.join(folder, "index.html"))
    try:
        wait_for(other, "answered")
        other.value("location.hash = %r" % link)
        fine = check("a link holds the program", wait_for(other, "text.value.includes('# mine ✓')") and
                     other.value("text.value") == held)
        fine &= check("which is compiled", wait_for(other, "answered && at('verdict').className === 'proved'"))
        other.value("location.hash = '#nothing'")
        fine &= check("a link that holds none is refused",
                      wait_for(other, "at('said').textContent.startsWith('This link holds no program')"))
        return fine & check("without complaints: " + str(other.complaints), not other.complaints)
    finally:
        other.close()


def main():
    folder, compiler = sys.argv[1:3]
    browser = find_chromium()
    if browser is None:
        print("left out: no Chromium is installed (Debian: chromium)")
        return 0
    page = Chromium(browser, os.path.join(folder, "index.html"), patience=PATIENCE)
    try:
        fine = check_right(page)
        if len(sys.argv) > 3:
            page.picture(sys.argv[3])
        fine &= check_typing(page)
        fine &= check_umlauts(page)
        fine &= check_refused(page)
        fine &= check_fields(page)
        fine &= check_too_much(page)
        fine &= check_same(page, compiler)
        fine &= check_link(browser, page, folder)
        fine &= check("the page complains of nothing: " + str(page.complaints), not page.complaints)
    finally:
        page.close()
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
