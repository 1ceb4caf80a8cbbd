// The compiler of the page: a request on standard input, the answer on standard output, a part a
// line. The page starts it anew for each request, so that what one leaves behind, or breaks, is
// gone with it. `tools/playground/build` makes it WebAssembly.
#include <cstdio>
#include <string>

#include "tools/playground/answer.h"

int main() {
  std::string request;
  char block[4096];
  for (size_t n; (n = fread(block, 1, sizeof block, stdin)) > 0;) request.append(block, n);
  bool fine = ferror(stdin) == 0;
  mscclc::playground::answer(request, [&](std::string_view part) {
    fine = fine && fwrite(part.data(), 1, part.size(), stdout) == part.size() &&
           fputc('\n', stdout) != EOF && fflush(stdout) == 0;
  });
  return fine ? 0 : 1;
}
