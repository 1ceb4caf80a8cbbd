// Results as a file: one JSON object a line, so that a run that breaks off leaves what it has
// measured, and files of several runs can be joined by `cat`. Members in docs/design/bench.md.
#pragma once

#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"
#include "tools/bench/results/result.h"

namespace mscclc::bench {

std::string machine_line(const std::string& machine);
std::string result_line(const Result& result);
std::string left_out_line(const LeftOut& left_out);
std::string start_up_line(const StartUp& start_up);

/// Adds the lines of `text` to `record`. Errors (bad-record): a line that is none of these.
[[nodiscard]] bool read_record(std::string_view text, const std::string& name, Record& record,
                               Diagnostics& diagnostics);

}  // namespace mscclc::bench
