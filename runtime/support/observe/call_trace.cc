#include "runtime/support/observe/call_trace.h"

#include <fmt/format.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "ir/support/fnv.h"
#include "runtime/support/fd.h"
#include "runtime/support/observe/file_name.h"
#include "runtime/support/observe/new_file.h"

namespace mscclc {

uint64_t digest_of(std::span<const std::vector<uint8_t>> messages) {
  Fnv digest;
  for (const std::vector<uint8_t>& message : messages) {
    for (const uint8_t byte : message) digest.add(byte);
    digest.add(static_cast<uint8_t>(message.size()));
  }
  return digest.value();
}

std::string call_trace_json(const CallTrace& trace) {
  using nlohmann::json;
  json plans = json::array(), calls = json::array(), marks = json::array();
  for (const auto& [executable, plan] : trace.plans) {
    plans.push_back({{"executable", executable},
                     {"name", plan.name},
                     {"collective", std::string(name(plan.kind))}});
  }
  for (const FlightCall& call : trace.calls) {
    calls.push_back({{"executable", call.executable},
                     {"call", call.call},
                     {"bytes", call.bytes},
                     {"dtype", std::string(info(call.dtype).name)},
                     {"op", std::string(name(call.op))},
                     {"stream", call.stream},
                     {"launched_ns", call.launched},
                     {"ended_ns", call.ended == 0 ? json(nullptr) : json(call.ended)}});
  }
  for (const ClockMark& mark : trace.marks) {
    marks.push_back({mark.number, mark.entered, mark.left});
  }
  const json all = {{"mscclc_trace", kTraceVersion},
                    {"rank", trace.rank},
                    {"size", trace.size},
                    {"group", fmt::format("{:016x}", trace.group)},
                    {"host", trace.host},
                    {"process", trace.process},
                    {"launched", trace.launched},
                    {"marks", marks},
                    {"plans", plans},
                    {"calls", calls}};
  return all.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<std::string> write_call_trace(const CallTrace& trace, std::string_view pattern) {
  constexpr int kMaxNames = 100;
  const std::string base = expand_file_name(pattern, trace.rank);
  if (base.empty()) {
    return Error{fmt::format("'{}' is not a file name with %h, %p, %r and %%", pattern)};
  }
  const std::string text = call_trace_json(trace);
  for (int i = 1; i <= kMaxNames; ++i) {
    const std::string name = (i == 1 ? base : fmt::format("{}-{}", base, i)) + ".json";
    if (write_new_file(name, text)) return name;
    if (errno != EEXIST) break;
  }
  return Error{fmt::format("{}: {}", base, error_text(errno))};
}

}  // namespace mscclc
