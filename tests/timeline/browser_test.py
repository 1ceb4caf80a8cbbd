"""Opens timelines in headless Chromium: they are drawn, complain of nothing, and show tooltips.

    browser_test.py MSCCLC               the checks
    browser_test.py MSCCLC --update      draws the timelines of docs/ anew, in the checkout
"""

import json
import os
import struct
import subprocess
import sys
import tempfile

from chromium import Chromium, find_chromium

PROGRAM = "plans/allreduce_2shot.mscl"


def docs():
    """The checkout's where `bazel run` was called, else those that the test has."""
    return os.path.join(os.environ.get("BUILD_WORKSPACE_DIRECTORY", "."), "docs")


def check(what, happened):
    print(("passed: " if happened else "FAILED: ") + what)
    return bool(happened)


def find_step(page, op):
    """Where the middle of the longest step of that op lies in the window; if any waited, of those that did.
    The mouse would miss one that is narrower than a pixel."""
    return page.value("""(() => {
      const view = views[0];
      const steps = [...view.slices.keys()].filter(i => opOf(view.slices[i])[0] === '%s');
      const late = steps.filter(i => view.into.has(i)), width = i => view.slices[i][END] - view.slices[i][BEGIN];
      const slice = (late.length > 0 ? late : steps).reduce((a, b) => width(b) > width(a) ? b : a);
      const s = view.slices[slice], box = canvas.getBoundingClientRect();
      return [box.left + xOf(view, (s[BEGIN] + s[END]) / 2), box.top + middle(s)];
    })()""" % op)


def colours(page):
    """How many colours the canvas has."""
    return page.value("""(() => {
      const pixels = pen.getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();
      for (let i = 0; i < pixels.length; i += 4) seen.add(pixels[i] << 16 | pixels[i + 1] << 8 | pixels[i + 2]);
      return seen.size;
    })()""")


def check_page(page, views):
    fine = check("there are as many views as traces", page.value("views.length") == views)
    fine &= check("steps are drawn", int(page.value("canvas.dataset.drawn")) > 50)
    fine &= check("in colours", colours(page) > 10)
    fine &= check("no colour means two things", page.value("""(() => {
      const all = [...Object.values(kColours), ...Object.values(kCauses).map(([colour]) => colour)];
      return new Set(all).size === all.length;
    })()"""))
    fine &= check("every cause of the path is in its legend",
                  page.value("[...causes].every((cause) => at('causes').textContent.includes(cause))"))
    fine &= check("no tooltip comes by itself", page.value("tip.style.display") != "block")
    x, y = find_step(page, "wait")
    page.mouse("mouseMoved", x, y)
    said = page.value("tip.style.display === 'block' ? tip.innerText : ''")
    # In a real run on a busy machine it may be that all signals had come before they were waited for.
    waited = views == 1 or page.value(
        "views[0].slices.some((s, i) => opOf(s)[0] === 'wait' && views[0].into.has(i))")
    fine &= check("a tooltip names the step, its line and whom it waited for: " + repr(said),
                  said.startswith("wait rank ") and ".mscl:" in said and
                  (" for a signal of rank " in said) == waited)
    fine &= check("beside a measured time stands the predicted one", ("predicted: " in said) == (views == 2))
    # Folded ranks have narrow tracks; a click on a rank's name gives it wide ones.
    track = page.value("tracksAt[0].track")
    box = page.value("(() => { const b = canvas.getBoundingClientRect(); return [b.left, b.top]; })()")
    page.click(box[0] + 30, box[1] + page.value("kHead + 8"))
    fine &= check("a click on a rank unfolds it", page.value("open[0]") and page.value("tracksAt[0].track") > track)
    # Zoom: the wheel with ctrl.
    before = page.value("views[0].to - views[0].from")
    page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400, modifiers=2)
    fine &= check("the wheel zooms", page.value("views[0].to - views[0].from") < before)
    page.value("at('all').click()")
    fine &= check("and a button shows the whole call again", page.value("views[0].from") == 0)
    page.value("at('find').value = 'reduce', at('find').dispatchEvent(new Event('input'))")
    fine &= check("what is looked for is found", 0 < page.value("views[0].slices.filter(found).length") <
                  page.value("views[0].slices.length"))
    page.value("at('arrows').click()")
    page.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.value("at('room').style.flex = '0 0 333px'")
    fits = page.value("""new Promise((done) => {
      const end = performance.now() + 30000;
      const look = () => {
        if (canvas.height === 333 || performance.now() > end) done(canvas.height === canvas.clientHeight);
        else requestAnimationFrame(look);
      };
      look();
    })""")
    fine &= check("what gets another size is drawn anew, though the window keeps its own", fits)
    fine &= check("the page complains of nothing: " + str(page.complaints), not page.complaints)
    return fine & check("nor says so itself", page.value("at('say').textContent") == "")


def check_in_frame(browser, html, folder):
    """A frame that is not shown has no size; once it has one, the timeline is drawn."""
    with open(html, encoding="utf-8") as page:
        text = json.dumps(page.read()).replace("</", "<\\/")
    host = os.path.join(folder, "host.html")
    with open(host, "w", encoding="utf-8") as out:
        out.write("""<!DOCTYPE html><meta charset="utf-8">
<iframe id="frame" style="display: none; width: 900px; height: 500px"></iframe>
<script>frame.srcdoc = %s;</script>""" % text)
    page = Chromium(browser, host)
    drawn = "frame.contentDocument.getElementById('canvas').dataset.drawn || 0"
    # At most 30 s: a busy machine has its frames late.
    shown = """new Promise((done) => {
      frame.style.display = 'block';
      const end = performance.now() + 30000;
      const look = () => {
        const drawn = Number(%s);
        if (drawn > 0 || performance.now() > end) done(drawn);
        else requestAnimationFrame(look);
      };
      look();
    })""" % drawn
    try:
        fine = check("without a size nothing is drawn", int(page.value(drawn)) == 0)
        fine &= check("with one, steps are", page.value(shown) > 50)
        return fine & check("the page complains of nothing: " + str(page.complaints), not page.complaints)
    finally:
        page.close()


def check_plan(mscclc, browser, folder):
    """Pages of plans: a click follows a box's data, another one moves that; filters dim lines to all ranks."""
    def plan(program):
        html = os.path.join(folder, program + ".html")
        subprocess.run([mscclc, "compile", "plans/%s.mscl" % program, "-D", "R=4", "--emit=html", "-o", html], check=True)
        return Chromium(browser, html)

    def click(box):
        page.value("boxes[%d].shape.dispatchEvent(new MouseEvent('click'))" % box)
        return page.value("boxes.filter((box) => !box.shape.classList.contains('dim'))"
                          ".map((box) => box.rank + ' ' + box.row).join(', ')")
    page = plan("allreduce_ring")
    try:
        fine = check("a page fits the window", page.value("document.documentElement.scrollWidth <= innerWidth"))
        fine &= check("a click follows data round the ring", click(0) == "0 0, 0 4, 1 1, 1 5, 2 2, 2 6, 3 3")
        fine &= check("a click on another box follows that", click(1) == "0 1, 0 5, 1 2, 1 6, 2 3, 3 0, 3 4")
        fine &= check("a second one ends it", click(1).count(",") == 27)
    finally:
        page.close()
    page = plan("allreduce_2shot")
    try:
        page.value("field('rank').value = '0,1', show()")
        fine &= check("lines to all are dimmed where ranks are left out", page.value(
            "arrows.filter((a) => a.at).every((a) => a.shape.classList.contains('dim') === a.at.rank > 1)"))
        return fine & check("the page complains of nothing: " + str(page.complaints), not page.complaints)
    finally:
        page.close()


def tutorial(program, folder):
    """Writes a program that docs/tutorial.md shows into a folder."""
    with open(os.path.join(docs(), "tutorial.md"), encoding="utf-8") as page:
        text = page.read()
    begin = text.index("`%s`:\n\n```mscl\n" % program)
    begin = text.index("```mscl\n", begin) + len("```mscl\n")
    with open(os.path.join(folder, program), "w", encoding="utf-8") as out:
        out.write(text[begin:text.index("```", begin)])


def draw(mscclc, browser, folder, where):
    """Draws the pictures of the pages, with a step under the mouse, into the folder `where`."""
    fine = True
    tutorial("fixed.mscl", folder)
    tutorial("fast.mscl", folder)
    for picture, op, height, place, options in (
        ("timeline", "wait", 880, ".", [PROGRAM, "-D", "R=8", "--bytes", "1M", "--machine", "8xH200"]),
        ("tutorial_slow", "put", 330, folder, ["fixed.mscl", "--bytes", "64K", "--machine", "4xH200"]),
        ("tutorial_fast", "reduce_packets", 420, folder,
         ["fast.mscl", "-D", "B=48", "-D", "F=LL128", "--bytes", "64K", "--machine", "4xH200"]),
    ):
        html = os.path.join(folder, picture + ".html")
        subprocess.run([os.path.abspath(mscclc), "explain", *options, "--no-choices", "--html", html],
                       check=True, stdout=subprocess.DEVNULL, cwd=place)
        page = Chromium(browser, html, width=1200, height=height)
        try:
            x, y = find_step(page, op)
            page.mouse("mouseMoved", x, y)
            page.picture(os.path.join(where, picture + ".png"))
            fine &= check(picture + ".png has steps, and what is said of one",
                          colours(page) > 10 and page.value("tip.style.display") == "block")
            fine &= check("its page complains of nothing: " + str(page.complaints), not page.complaints)
        finally:
            page.close()
    return fine


def size_of(png):
    """Width and height; None if it is no PNG."""
    with open(png, "rb") as file:
        head = file.read(24)
    return struct.unpack(">II", head[16:]) if head[:8] == b"\x89PNG\r\n\x1a\n" else None


def check_pictures(mscclc, browser, folder):
    """The pictures of the pages can be drawn anew. Fonts differ between machines: not pixel by pixel the same."""
    where = os.path.join(folder, "pictures")
    os.mkdir(where)
    fine = draw(mscclc, browser, folder, where)
    drawn = sorted(os.listdir(where))
    fine &= check("these are those that docs/ has: " + str(drawn),
                  drawn == sorted(name for name in os.listdir(docs()) if name.endswith(".png")))
    for name in drawn:
        new, kept = os.path.join(where, name), os.path.join(docs(), name)
        fine &= check(name + " is as large as that of docs/", size_of(new) is not None and size_of(new) == size_of(kept)
                      and os.path.getsize(new) > os.path.getsize(kept) / 2)
    return fine


def main():
    mscclc = sys.argv[1]
    browser = find_chromium()
    if browser is None:
        print("left out: no Chromium is installed (Debian: chromium)")
        return 0
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        if "--update" in sys.argv:
            return 0 if draw(mscclc, browser, folder, docs()) else 1
        for views, command in (
            (1, ["explain", PROGRAM, "-D", "R=8", "--bytes", "1M", "--no-choices"]),
            (1, ["run", PROGRAM, "-D", "R=2", "--bytes", "64K", "--machine", "8xH100"]),
            (2, ["run", PROGRAM, "-D", "R=4", "--bytes", "64K", "--device", "processes"]),
        ):
            print("mscclc " + " ".join(command))
            html = os.path.join(folder, command[0] + str(views) + ".html")
            subprocess.run([mscclc, *command, "--html", html], check=True, stdout=subprocess.DEVNULL)
            page = Chromium(browser, html)
            try:
                fine &= check_page(page, views)
            finally:
                page.close()
        fine &= check_in_frame(browser, html, folder)
        fine &= check_plan(mscclc, browser, folder)
        fine &= check_pictures(mscclc, browser, folder)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
