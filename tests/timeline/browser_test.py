"""Opens timelines in headless Chromium: they are drawn, complain of nothing, and show tooltips.

    browser_test.py MSCCLC               the checks
    browser_test.py MSCCLC --update      draws docs/timeline.png anew, in the checkout
"""

import os
import subprocess
import sys
import tempfile

from chromium import Chromium, find_chromium

PROGRAM = "plans/allreduce_2shot.mscl"


def check(what, happened):
    print(("passed: " if happened else "FAILED: ") + what)
    return bool(happened)


def find_step(page, op):
    """Where the middle of a step of that op lies in the window."""
    return page.value("""(() => {
      const view = views[0];
      const slice = view.slices.findIndex((s, i) => opOf(s)[0] === '%s' && view.into.has(i));
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
    fine &= check("no tooltip comes by itself", page.value("tip.style.display") != "block")
    x, y = find_step(page, "wait")
    page.mouse("mouseMoved", x, y)
    said = page.value("tip.style.display === 'block' ? tip.innerText : ''")
    fine &= check("a tooltip names the step, its line and whom it waited for: " + repr(said),
                  said.startswith("wait rank ") and ".mscl:" in said and "waited " in said and
                  " for a signal of rank " in said)
    fine &= check("beside a measured time stands the predicted one", ("predicted: " in said) == (views == 2))
    # Folded ranks have narrow lanes; a click on a rank's name gives it wide ones.
    lane = page.value("lanesAt[0].lane")
    box = page.value("(() => { const b = canvas.getBoundingClientRect(); return [b.left, b.top]; })()")
    page.click(box[0] + 30, box[1] + page.value("kHead + 8"))
    fine &= check("a click on a rank unfolds it", page.value("open[0]") and page.value("lanesAt[0].lane") > lane)
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
    fine &= check("the page complains of nothing: " + str(page.complaints), not page.complaints)
    return fine & check("nor says so itself", page.value("at('say').textContent") == "")


def draw(mscclc, browser, folder):
    """The picture of docs/timeline.md, with a step under the mouse."""
    html = os.path.join(folder, "timeline.html")
    subprocess.run([mscclc, "explain", PROGRAM, "-D", "R=8", "--bytes", "1M", "--machine", "8xH200",
                    "--no-choices", "--html", html], check=True, stdout=subprocess.DEVNULL)
    page = Chromium(browser, html, width=1200, height=880)
    try:
        x, y = find_step(page, "wait")
        page.mouse("mouseMoved", x, y)
        page.picture(os.path.join(os.environ["BUILD_WORKSPACE_DIRECTORY"], "docs", "timeline.png"))
    finally:
        page.close()


def main():
    mscclc = sys.argv[1]
    browser = find_chromium()
    if browser is None:
        print("left out: no Chromium is installed (Debian: chromium)")
        return 0
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        if "--update" in sys.argv:
            draw(mscclc, browser, folder)
            return 0
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
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
