// The colours of diagnostics.
#include "tools/io/colours.h"

#include <catch2/catch.hpp>

using namespace mscclc;

TEST_CASE("a diagnostic in colours") {
  CHECK(with_colours("a.mscl:3:5: error: unknown op 'putt'\n    putt x\n    ^~~~\n"
                     "a.mscl:3:5: note: a note: with a colon\n") ==
        "\x1b[1ma.mscl:3:5: \x1b[0m\x1b[1;31merror:\x1b[0m unknown op 'putt'\n    putt x\n"
        "\x1b[32m    ^~~~\x1b[0m\n"
        "\x1b[1ma.mscl:3:5: \x1b[0m\x1b[36mnote:\x1b[0m a note: with a colon\n");
  CHECK(with_colours("error: no parameter 'Q' for -D Q=1") ==
        "\x1b[1m\x1b[0m\x1b[1;31merror:\x1b[0m no parameter 'Q' for -D Q=1");
  CHECK(with_colours("warning: x\n") == "\x1b[1m\x1b[0m\x1b[1;35mwarning:\x1b[0m x\n");
  CHECK(with_colours("3 more errors\n").find('\x1b') == std::string::npos);
  CHECK(with_colours("").empty());
}
