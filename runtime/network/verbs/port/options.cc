#include "runtime/network/verbs/port/options.h"

#include "runtime/support/environment/environment.h"

namespace mscclc::verbs {
namespace {

bool take_devices(const Environment& environment, VerbsOptions& options, Diagnostics& diagnostics) {
  if (!environment.has(Variable::MSCCLC_IB_HCA)) return true;
  const auto text = environment.text(Variable::MSCCLC_IB_HCA, diagnostics);
  const auto list = text ? read_hca_list(*text, diagnostics) : std::nullopt;
  if (list) options.devices = *list;
  return list.has_value();
}

bool take_mode(const Environment& environment, VerbsOptions& options, Diagnostics& diagnostics) {
  if (!environment.has(Variable::MSCCLC_IBV_MODE)) return true;
  const auto text = environment.text(Variable::MSCCLC_IBV_MODE, diagnostics);
  if (text) options.mode = *text == "host" ? SignalMode::host : SignalMode::host_no_atomic;
  return text.has_value();
}

}  // namespace

std::string_view name(SignalMode mode) {
  return mode == SignalMode::host ? "host" : "host-no-atomic";
}

std::optional<VerbsOptions> read_verbs_options(Diagnostics& diagnostics) {
  const Environment environment = Environment::of_process();
  VerbsOptions options;
  const auto library = environment.text(Variable::MSCCLC_IBV_SO, diagnostics);
  const auto mlx5 = environment.text(Variable::MSCCLC_MLX5_SO, diagnostics);
  const auto queues = environment.number(Variable::MSCCLC_IB_QPS, diagnostics);
  const auto timeout = environment.number(Variable::MSCCLC_IB_TIMEOUT, diagnostics);
  const auto retries = environment.number(Variable::MSCCLC_IB_RETRY_CNT, diagnostics);
  const auto level = environment.number(Variable::MSCCLC_IB_SL, diagnostics);
  const auto traffic = environment.number(Variable::MSCCLC_IB_TC, diagnostics);
  const auto partition = environment.number(Variable::MSCCLC_IB_PKEY, diagnostics);
  if (!library || !mlx5 || !queues || !timeout || !retries || !level || !traffic || !partition) {
    return std::nullopt;
  }
  options.library = *library;
  options.mlx5_library = *mlx5;
  options.queues = static_cast<uint32_t>(*queues);
  options.timeout = static_cast<uint8_t>(*timeout);
  options.retries = static_cast<uint8_t>(*retries);
  options.service_level = static_cast<uint8_t>(*level);
  options.traffic_class = static_cast<uint8_t>(*traffic);
  options.partition = static_cast<uint16_t>(*partition);
  if (environment.has(Variable::MSCCLC_IB_GID_INDEX)) {
    const auto index = environment.number(Variable::MSCCLC_IB_GID_INDEX, diagnostics);
    if (!index) return std::nullopt;
    options.gid_index = static_cast<uint32_t>(*index);
  }
  if (!take_devices(environment, options, diagnostics) ||
      !take_mode(environment, options, diagnostics)) {
    return std::nullopt;
  }
  return options;
}

}  // namespace mscclc::verbs
