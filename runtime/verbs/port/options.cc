#include "runtime/verbs/port/options.h"

#include <fmt/format.h>

#include "runtime/base/environment.h"

namespace mscclc::verbs {
namespace {

constexpr SignalMode kModes[] = {SignalMode::host, SignalMode::host_no_atomic};

bool refuse(Diagnostics& diagnostics, Variable variable, const std::string& value,
            const std::string& allowed) {
  diagnostics.error("bad-variable", {},
                    fmt::format("{} is {}; {}", info(variable).name, quoted(value), allowed));
  return false;
}

bool read_devices(const Environment& environment, VerbsOptions& options, Diagnostics& diagnostics) {
  constexpr Variable kDevices = Variable::MSCCLC_IB_HCA;
  if (!environment.has(kDevices)) return true;
  const auto text = environment.text(kDevices, diagnostics);
  if (!text) return false;
  std::string why;
  const auto list = parse_hca_list(*text, why);
  if (!list) return refuse(diagnostics, kDevices, *text, why);
  options.devices = *list;
  return true;
}

bool read_mode(const Environment& environment, VerbsOptions& options, Diagnostics& diagnostics) {
  constexpr Variable kMode = Variable::MSCCLC_IBV_MODE;
  if (!environment.has(kMode)) return true;
  const auto text = environment.text(kMode, diagnostics);
  if (!text) return false;
  for (const SignalMode mode : kModes) {
    if (*text == name(mode)) options.mode = mode;
  }
  return options.mode || refuse(diagnostics, kMode, *text, "allowed are host and host-no-atomic");
}

}  // namespace

std::string_view name(SignalMode mode) {
  return mode == SignalMode::host ? "host" : "host-no-atomic";
}

std::optional<VerbsOptions> read_verbs_options(Diagnostics& diagnostics) {
  const Environment environment = Environment::of_process();
  VerbsOptions options;
  const auto library = environment.text(Variable::MSCCLC_IBV_SO, diagnostics);
  const auto queues = environment.number(Variable::MSCCLC_IB_QPS, diagnostics);
  const auto timeout = environment.number(Variable::MSCCLC_IB_TIMEOUT, diagnostics);
  const auto retries = environment.number(Variable::MSCCLC_IB_RETRY_CNT, diagnostics);
  if (!library || !queues || !timeout || !retries) return std::nullopt;
  options.library = *library;
  options.queues = static_cast<uint32_t>(*queues);
  options.timeout = static_cast<uint8_t>(*timeout);
  options.retries = static_cast<uint8_t>(*retries);
  if (environment.has(Variable::MSCCLC_IB_GID_INDEX)) {
    const auto index = environment.number(Variable::MSCCLC_IB_GID_INDEX, diagnostics);
    if (!index) return std::nullopt;
    options.gid_index = static_cast<uint32_t>(*index);
  }
  if (!read_devices(environment, options, diagnostics) ||
      !read_mode(environment, options, diagnostics)) {
    return std::nullopt;
  }
  return options;
}

}  // namespace mscclc::verbs
