// What the command says of a shape.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tools/tune/overlap/measured_rows.h"

namespace mscclc::tune {

std::string result_text(const GemmResult& result) {
  const OverlapConfig& shape = result.shape;
  const double serial = result.serial_ns();
  std::string text =
      fmt::format("{} over {} ranks, {}, m {}, k {}, n {}, {}: ", name(shape.kind), result.ranks,
                  info(shape.a_dtype).name, shape.m, shape.k, fmt::join(shape.n, ","),
                  result.mode == overlap::RunMode::captured ? "in graphs" : "eager");
  if (result.best.ns == 0) {
    text += "serial could not be timed";
  } else {
    text += text_of(result.best.way);
  }
  for (const GemmTime& time : result.times) {
    text += fmt::format("; {}: {:.2f} us", text_of(time.way), time.ns / 1e3);
    if (serial > 0) text += fmt::format(", {:.0f} %", 100 * time.ns / serial);
  }
  text += "\n";
  for (const std::string& way : result.wrong) text += "  WRONG RESULTS: " + way + "\n";
  for (const std::string& way : result.left_out) text += "  not timed: " + way + "\n";
  return text;
}

}  // namespace mscclc::tune
