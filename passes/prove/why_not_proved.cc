#include "passes/prove/why_not_proved.h"

#include "ir/support/precondition.h"
#include "passes/prove/prove.h"

namespace mscclc {

std::string why_not_proved(const Program& program, const Sources& sources) {
  precondition(program.split);
  Diagnostics found;
  if (prove(program, found, {.try_copies = true}).proved) return "";
  const std::string text = render_text(found, sources, 1);
  return text.substr(0, text.find('\n'));
}

}  // namespace mscclc
