#include "runtime/doors/nccl/comm/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/variables/translate.h"

namespace mscclc::nccl {
namespace {

struct Head {
  size_t size;
  unsigned int magic, version;
};
static_assert(sizeof(Head) == 16);

enum class Kind : uint8_t { number, text };
struct Field {
  const char* name;
  unsigned since;
  Kind kind;
  size_t offset;
  int least, most;
};
constexpr Field kFields[] = {
#define FIELD(name, since, kind, offset, least, most) \
  {#name, since, Kind::kind, offset, least, most},
#include "runtime/doors/nccl/comm/config_fields.def"
#undef FIELD
};
/// Offsets of the fields that we read.
enum Offset : size_t {
#define FIELD(name, since, kind, offset, least, most) k_##name = offset,
#include "runtime/doors/nccl/comm/config_fields.def"
#undef FIELD
};
/// The first version with a configuration: every other one takes it.
constexpr Head kLeastHead{24, MSCCLC_NCCL_MAGIC, 21400};
constexpr size_t kMaxText = 4096;  ///< of a name: more is no name

using Bytes = std::array<uint8_t, kMaxConfigBytes>;

template <typename T>
T get(const Bytes& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}
template <typename T>
void put(Bytes& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

size_t bytes_of(Kind kind) { return kind == Kind::text ? sizeof(const char*) : sizeof(int); }

/// Clears what the caller's version does not have, as far as the caller's bytes reach.
void clear_newer(Bytes& bytes, size_t size, unsigned version) {
  for (const Field& field : kFields) {
    const bool there = field.since <= version && field.offset + bytes_of(field.kind) <= size;
    if (there) continue;
    if (field.kind == Kind::text) put<const char*>(bytes, field.offset, nullptr);
    if (field.kind == Kind::number) put<int>(bytes, field.offset, kNcclUndefinedInt);
  }
}

bool in_range(const Bytes& bytes) {
  for (const Field& field : kFields) {
    if (field.kind != Kind::number) continue;
    const int value = get<int>(bytes, field.offset);
    if (value == kNcclUndefinedInt || (value >= field.least && value <= field.most)) continue;
    (void)fail(ncclInvalidArgument, fmt::format("config: {} is {}; allowed is {} to {}", field.name,
                                                value, field.least, field.most));
    return false;
  }
  const int least = get<int>(bytes, k_minCTAs), most = get<int>(bytes, k_maxCTAs);
  if (least == kNcclUndefinedInt || most == kNcclUndefinedInt || least <= most) return true;
  (void)fail(ncclInvalidArgument,
             fmt::format("config: minCTAs is {}, more than maxCTAs, {}", least, most));
  return false;
}

/// Copies a text, and takes the caller's pointer to it out.
bool take_text(Bytes& bytes, size_t offset, std::string& text) {
  const char* const pointer = get<const char*>(bytes, offset);
  put<const char*>(bytes, offset, nullptr);
  if (pointer == nullptr) return false;
  text.assign(pointer, ::strnlen(pointer, kMaxText));
  return true;
}

}  // namespace

Config::Config() {
  put(bytes_, 0, kLeastHead);
  clear_newer(bytes_, 0, 0);
}

std::optional<Config> Config::read(const ncclConfig_t* config) {
  Config made;
  if (config == nullptr) return made;
  Head head;
  std::memcpy(&head, config, sizeof head);
  if (head.magic != MSCCLC_NCCL_MAGIC || head.size < sizeof head) {
    (void)fail(ncclInvalidArgument, "config: it was not made with NCCL_CONFIG_INITIALIZER");
    return std::nullopt;
  }
  const size_t size = std::min(head.size, kMaxConfigBytes);
  std::memcpy(made.bytes_.data(), config, size);
  clear_newer(made.bytes_, size, head.version);
  if (!in_range(made.bytes_)) return std::nullopt;
  made.has_net_name_ = take_text(made.bytes_, k_netName, made.net_name_);
  made.has_comm_name_ = take_text(made.bytes_, k_commName, made.comm_name_);
  put(made.bytes_, 0, Head{size, MSCCLC_NCCL_MAGIC, head.version});
  return made;
}

int Config::blocking() const { return get<int>(bytes_, k_blocking); }
int Config::max_ctas() const { return get<int>(bytes_, k_maxCTAs); }
int Config::cta_policy() const { return get<int>(bytes_, k_CTAPolicy); }
int Config::graph_usage_mode() const { return get<int>(bytes_, k_graphUsageMode); }

std::vector<std::string> Config::without_effect(const Environment& environment) const {
  std::vector<std::string> out;
  const auto warn = [&](const char* field, std::string_view why) {
    out.push_back(
        fmt::format("{} of a communicator's configuration has no effect on calls that plans "
                    "serve: {}",
                    field, why));
  };
  const std::string_view set = environment.raw(Variable::MSCCLC_LANE);
  const auto wanted = translation("network")(net_name_, {});
  if (wanted && set.empty() && *wanted != info(Variable::MSCCLC_LANE).fallback) {
    warn("netName", "set NCCL_NET");
  }
  const bool has_class = get<int>(bytes_, k_trafficClass) != kNcclUndefinedInt;
  if (has_class && set == "verbs" && !environment.has(Variable::MSCCLC_IB_TC)) {
    warn("trafficClass", "set NCCL_IB_TC");
  }
  if (get<int>(bytes_, k_launchOrderImplicit) == 1) {
    warn("launchOrderImplicit", "those of different communicators are not ordered");
  }
  return out;
}

ncclConfig_t* Config::for_real(Bytes& bytes) const {
  bytes = bytes_;
  if (has_net_name_) put(bytes, k_netName, net_name_.c_str());
  if (has_comm_name_) put(bytes, k_commName, comm_name_.c_str());
  // The real communicator is made, and waited for, on a thread of its own.
  put(bytes, k_blocking, 1);
  return reinterpret_cast<ncclConfig_t*>(bytes.data());
}

}  // namespace mscclc::nccl
