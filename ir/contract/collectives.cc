#include "ir/contract/collectives.h"

#include <algorithm>
#include <iterator>

namespace mscclc {
namespace {

constexpr SideInfo nothing{SideForm::nothing}, whole{SideForm::whole}, rows{SideForm::rows},
    counted{SideForm::counted}, declared{SideForm::declared};
constexpr SideInfo root(SideInfo side) { return {side.form, true}; }
constexpr bool may = true, never = false;

constexpr CollectiveInfo kCollectives[] = {
#define COLLECTIVE(name, input, output, source, in_place, bus) \
  {#name, input, output, Source::source, in_place, BusTraffic::bus},
#include "ir/contract/collectives.def"
#undef COLLECTIVE
};

}  // namespace

const CollectiveInfo& info(CollectiveKind kind) { return kCollectives[static_cast<size_t>(kind)]; }

std::string_view name(CollectiveKind kind) { return info(kind).name; }

std::optional<CollectiveKind> find_collective(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kCollectives) + 1, std::end(kCollectives),
                   [&](const CollectiveInfo& collective) { return collective.name == name; });
  if (found == std::end(kCollectives)) return std::nullopt;
  return static_cast<CollectiveKind>(found - std::begin(kCollectives));
}

std::vector<std::string_view> collective_names() {
  std::vector<std::string_view> names;
  for (auto c = std::begin(kCollectives) + 1; c != std::end(kCollectives); ++c) {
    names.push_back(c->name);
  }
  return names;
}

}  // namespace mscclc
