#include "runtime/core/device/links.h"

#include <fmt/format.h>

#include "ir/report/op_error.h"

namespace mscclc {
namespace {

constexpr const char* kNeedsAccess =
    "plans need peer access between their GPUs; 'nvidia-smi topo -p2p r' shows which have it";
constexpr const char* kPortsLeadThere =
    "only port channels lead there: declare the channel as port(...), or take a plan for several "
    "nodes, such as the library's *_hier with 'gpus' set to the ranks of a node";

/// The format of the packets that the op stores at the far end `o`.
const PacketFormatInfo& format_at(const Program& plan, uint32_t rank, const Operand& o) {
  return info(plan.buffer_of(rank, o).packets);
}

void report_access(const Program& plan, uint32_t rank, const Op& op, uint32_t peer,
                   const Link& link, Diagnostics& diagnostics) {
  const char* remedy = link.lanes ? kPortsLeadThere : kNeedsAccess;
  op_error(diagnostics, "no-peer-access", plan, rank, op,
           fmt::format("rank {} cannot reach the memory of rank {}: {}", rank, peer, link.why))
      .notes.push_back({remedy});
}

void report_lines(const Program& plan, uint32_t rank, const Op& op, uint32_t peer, const Link& link,
                  const PacketFormatInfo& format, Diagnostics& diagnostics) {
  op_error(diagnostics, "no-nvlink", plan, rank, op,
           fmt::format("packets in {} from rank {} to rank {} need NVLink: elsewhere a line of {} "
                       "bytes may come in pieces ({})",
                       format.name, rank, peer, format.whole, link.why))
      .notes.push_back(
          {"use LL16 or LL8 there; 'mscclc select --links pcie' shows what the library takes"});
}

/// A switch's op touches the memory of all members. False: reported.
bool check_members(const Program& plan, uint32_t rank, const Op& op, const Channel& channel,
                   std::span<const Link> links, Diagnostics& diagnostics) {
  for (const int64_t member : plan.values(channel.group)) {
    const auto peer = static_cast<uint32_t>(member);
    if (links[peer].access) continue;
    report_access(plan, rank, op, peer, links[peer], diagnostics);
    return false;
  }
  return true;
}

/// False: reported.
bool check_op(const Program& plan, uint32_t rank, const Op& op, std::span<const Link> links,
              Diagnostics& diagnostics) {
  if (op.kind == OpKind::wait) return true;  // what is waited for lies here
  for (const Operand& o : plan.all_operands(op)) {
    if (o.channel == kNone) continue;
    const Channel& channel = plan.ranks[rank].channels[o.channel];
    if (channel.kind == ChannelKind::switch_) {
      if (!check_members(plan, rank, op, channel, links, diagnostics)) return false;
      continue;
    }
    const Link& link = links[channel.peer];
    if (!link.access && !(channel.kind == ChannelKind::port && link.lanes)) {
      report_access(plan, rank, op, channel.peer, link, diagnostics);
      return false;
    }
    if (!info(op.kind).moves_data() || link.kind != LinkKind::pcie) continue;
    const PacketFormatInfo& format = format_at(plan, rank, o);
    if (format.goes_everywhere()) continue;
    report_lines(plan, rank, op, channel.peer, link, format, diagnostics);
    return false;
  }
  return true;
}

}  // namespace

bool check_links(const Program& plan, uint32_t rank, std::span<const Link> links,
                 Diagnostics& diagnostics) {
  for (const Op& op : plan.ranks[rank].ops) {
    if (!check_op(plan, rank, op, links, diagnostics)) return false;
  }
  return true;
}

bool needs_stored_signals(const Channel& channel, std::span<const Link> links) {
  return channel.kind == ChannelKind::memory && channel.partner != kNone &&
         !links[channel.peer].atomics;
}

}  // namespace mscclc
