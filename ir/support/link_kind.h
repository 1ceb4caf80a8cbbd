// What joins the devices of two ranks, as far as plans depend on it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mscclc {

/// From best to worst. own: the same device, or memory of the machine's processor.
enum class LinkKind : uint8_t { own, nvlink, pcie };

inline constexpr std::array<std::string_view, 3> kLinkKinds = {"own", "nvlink", "pcie"};

inline std::string_view name(LinkKind kind) { return kLinkKinds[static_cast<size_t>(kind)]; }

/// The kind of a link between GPUs: "nvlink" or "pcie".
inline std::optional<LinkKind> find_link_kind(std::string_view text) {
  if (text == name(LinkKind::nvlink)) return LinkKind::nvlink;
  if (text == name(LinkKind::pcie)) return LinkKind::pcie;
  return std::nullopt;
}

}  // namespace mscclc
