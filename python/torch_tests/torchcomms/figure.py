"""Draws times over sizes, both axes logarithmic, as SVG."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 640, 400, 60, 50, 30, 30
COLORS = ["#1f6fb4", "#d9622b", "#3d8f4f", "#8a4fa3", "#7a6a4f"]


def figure(title, lines):
    """The text of a figure: `lines` has the points (bytes, µs) of each name."""
    points = [point for of_name in lines.values() for point in of_name]
    x, y = _axis([p[0] for p in points], 2), _axis([p[1] for p in points], 10)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(WIDTH / 2, 20, "middle", f"{title}: µs a call"),
        _text(WIDTH / 2, HEIGHT - 10, "middle", "bytes of the result"),
    ]
    bottom, right = HEIGHT - BELOW, WIDTH - RIGHT
    for value in _marks(x, 4):
        at = _place(value, x, LEFT, right)
        parts += [_line(at, ABOVE, at, bottom), _text(at, bottom + 18, "middle", short(value))]
    for value in _marks(y, 1):
        at = _place(value, y, bottom, ABOVE)
        parts += [_line(LEFT, at, right, at), _text(LEFT - 6, at + 4, "end", f"{value:g}")]
    for number, (name, of_name) in enumerate(lines.items()):
        color = COLORS[number % len(COLORS)]
        path = " ".join(f"{_place(a, x, LEFT, right):.1f},{_place(b, y, bottom, ABOVE):.1f}"
                        for a, b in sorted(of_name))  # fmt: skip
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(_text(LEFT + 12, ABOVE + 18 * (number + 1), "start", name, color))
    return "\n".join([*parts, "</svg>", ""])


def short(bytes):
    """64, 4K, 1M."""
    for unit, factor in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if bytes >= factor:
            return f"{bytes / factor:g}{unit}"
    return f"{bytes:g}"


def _axis(values, base):
    """Powers of the base around the values: the base, the first and the last exponent."""
    first = math.floor(math.log(min(values), base))
    return base, first, max(math.ceil(math.log(max(values), base)), first + 1)


def _marks(axis, step):
    base, first, last = axis
    return [base**exponent for exponent in range(first, last + 1, step)]


def _place(value, axis, begin, end):
    base, first, last = axis
    return begin + (end - begin) * (math.log(value, base) - first) / (last - first)


def _line(x, y, to_x, to_y):
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="#dddddd"/>'


def _text(x, y, anchor, text, color="black"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}">{escape(text)}</text>'
