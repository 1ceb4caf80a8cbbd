#include "compiler/builder/declare/declarations.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/draft/texts.h"
#include "ir/print/row_names.h"
#include "ir/verify/row_faults.h"

namespace mscclc {
namespace {

/// All indices of each chunk, in order.
void list_rows(const Rows& rows, uint32_t dims, std::vector<int64_t>& above,
               std::vector<int64_t>& out) {
  for (size_t i = 0; i < rows.index.size(); ++i) {
    above.push_back(rows.index[i]);
    if (above.size() == dims) {
      out.insert(out.end(), above.begin(), above.end());
    } else {
      list_rows(rows.below[i], dims, above, out);
    }
    above.pop_back();
  }
}

}  // namespace

void Declarations::set_ranks(uint32_t ranks) {
  names_.set_ranks(ranks);
  layouts_.set_ranks(ranks);
  members_.set_ranks(ranks);
  pairing_.set_ranks(ranks);
}

void Declarations::begin_rank() {
  if (draft_.rank > 0) {  // ranks are much alike
    const Rank& like = draft_.program.ranks[draft_.rank - 1];
    draft_.out->buffers.reserve(like.buffers.size());
    draft_.out->channels.reserve(like.channels.size());
    draft_.out->semaphores.reserve(like.semaphores.size());
  }
  names_.begin_rank();
  layouts_.begin_rank();
  members_.begin_rank();
  pairing_.begin_rank();
}

void Declarations::seal() {
  if (draft_.sealed) return;
  draft_.sealed = true;
  for (uint32_t r = 0; r < draft_.ranks(); ++r) members_.build_tables(r);
  pairing_.pair_channels();
}

bool Declarations::may_declare(Mark mark) {
  if (draft_.out == nullptr) {
    reports_.fail("rank", mark, "a declaration outside a rank");
    return false;
  }
  if (draft_.sealed) {
    reports_.fail("declaration-order", mark, "declare what every rank owns before the first op");
    return false;
  }
  return !budget_.gave_up() && budget_.add_declared(mark);
}

// ---- buffers ---------------------------------------------------------------------------------

bool Declarations::buffer(NameId name, std::span<const Dim> dims, BufferOptions options, Mark mark,
                          Mark dims_mark) {
  if (!may_be_buffer(options, mark)) return false;
  const auto axes = layouts_.make_axes(name, dims, mark);
  if (!axes) return false;
  const auto index = static_cast<uint32_t>(draft_.out->buffers.size());
  if (!names_.declare(name, DeclKind::buffer, index, mark)) return false;
  if (!layouts_.add(*axes, dims_mark, name, mark)) {
    names_.poison(name);
    return false;
  }
  Buffer b;
  b.name = name;
  b.chunks = 1;
  for (const Axis& axis : *axes) {
    draft_.program.integers.extend(b.dims, axis.length());
    b.chunks *= static_cast<uint32_t>(axis.length());
  }
  b.rows = layouts_.name_rows(*axes);
  add_buffer(b, options, mark);
  return true;
}

bool Declarations::ragged_buffer(NameId name, const Rows& rows, uint32_t dims,
                                 BufferOptions options, Mark mark, Mark dims_mark) {
  if (!may_be_buffer(options, mark)) return false;
  const auto index = static_cast<uint32_t>(draft_.out->buffers.size());
  if (!names_.declare(name, DeclKind::buffer, index, mark)) return false;
  if (!layouts_.add_tree(rows, dims, dims_mark, name, mark)) {
    names_.poison(name);
    return false;
  }
  Buffer b;
  b.name = name;
  b.chunks = layouts_.last().chunks;
  draft_.program.integers.extend(b.dims, b.chunks);
  std::vector<int64_t> indices, above;
  list_rows(rows, dims, above, indices);
  RowNames names(draft_.program);
  if (!indices.empty()) names.tuples(dims, indices);
  b.rows = names.take();
  add_buffer(b, options, mark);
  return true;
}

bool Declarations::may_be_buffer(const BufferOptions& options, Mark mark) {
  if (!may_declare(mark)) return false;
  if (options.copies < 1 || options.copies > kMaxCopies) {
    reports_.fail("copies", mark,
                  fmt::format("'copies' is {}; expected 1 to {}", options.copies, kMaxCopies));
    return false;
  }
  return !options.has_units || check_units_option(options, mark);
}

/// Adds a buffer whose layout is the last one of this rank.
void Declarations::add_buffer(Buffer b, const BufferOptions& options, Mark mark) {
  b.packets = options.packets;
  b.copies = options.copies;
  b.units = options.units;
  b.form = options.form;
  Layout& layout = layouts_.last();
  if (options.packets != PacketFormat::none) {
    layout.traits = kPacketTrait | 0x100u << static_cast<int>(options.packets);
  }
  if (options.units != 0) layout.traits = kUnitsTrait;
  b.declared = reports_.span(mark);
  draft_.out->buffers.push_back(b);
  if (const auto fault = buffer_fault(draft_.program, b)) {
    reports_.fail(fault->code, mark, fault->message);
  }
  if (is_sentinel(options.packets)) check_sentinel(mark);
}

bool Declarations::check_units_option(const BufferOptions& options, Mark mark) {
  if (options.units < 2 || options.units > kMaxUnits) {
    reports_.fail("units", mark,
                  fmt::format("'units' is {}; expected 2 to {}", options.units, kMaxUnits));
    return false;
  }
  if (options.packets == PacketFormat::none && options.copies == 1) return true;
  reports_.fail("units", mark, "'units' cannot be combined with 'packets' or 'copies'");
  return false;
}

/// The sentinel is a value of a float type: the plan must be picked for no other.
void Declarations::check_sentinel(Mark mark) {
  const std::vector<Dtype>& dtypes = draft_.program.select.dtypes;
  const bool good = !dtypes.empty() && std::ranges::all_of(dtypes, [](Dtype t) {
    return info(t).kind == DtypeKind::kFloat;
  });
  if (good || draft_.program.foreign) return;
  reports_.fail("sentinel-dtypes", mark, "sentinel packets need 'select dtypes:' of float types");
}

// ---- channels --------------------------------------------------------------------------------

bool Declarations::channel(ChannelKind kind, NameId name, std::span<const int64_t> keys,
                           int64_t peer, Mark mark, Mark peer_mark) {
  if (!may_declare(mark)) return false;
  if (peer < 0 || peer >= static_cast<int64_t>(draft_.ranks())) {
    Diagnostic& d =
        reports_.fail("no-such-rank", peer_mark,
                      fmt::format("rank {} has no rank {} to talk to", draft_.rank, peer));
    reports_.note(d, draft_.kind_mark,
                  fmt::format("there are {}", counted(draft_.ranks(), "rank")));
    names_.poison(name);
    return false;
  }
  if (peer == draft_.rank) {
    reports_.fail("channel-to-itself", peer_mark,
                  fmt::format("channel to itself on rank {}", draft_.rank));
    names_.poison(name);
    return false;
  }
  if (!members_.add(name, DeclKind::channel, keys, next_channel(), mark)) return false;
  Channel c;
  c.kind = kind;
  c.label = {name, draft_.program.append(keys)};
  c.peer = static_cast<uint32_t>(peer);
  c.declared = reports_.span(mark);
  if (kind == ChannelKind::memory) check_nodes(c, peer_mark);
  draft_.out->channels.push_back(c);
  pairing_.add_channel();
  return true;
}

/// Memory channels do not leave a node; where 'select' says how nodes look, that shows here.
void Declarations::check_nodes(const Channel& c, Mark mark) {
  const Select& select = draft_.program.select;
  const uint64_t gpus = select.gpus_per_node.min;
  if (gpus == 0 || select.gpus_per_node.max != gpus || select.nodes.max <= 1) return;
  if (draft_.rank / gpus == c.peer / gpus || draft_.program.foreign) return;
  Diagnostic& d =
      reports_.fail("memory-between-nodes", mark,
                    fmt::format("'{}' is a memory channel between two nodes; use 'port'",
                                draft_.program.text(c.label)));
  reports_.note(d, mark,
                fmt::format("with {} a node, rank {} is on node {}, rank {} on node {}",
                            counted(static_cast<int64_t>(gpus), "GPU"), draft_.rank,
                            draft_.rank / gpus, c.peer, c.peer / gpus));
}

bool Declarations::credits(uint32_t count, Mark mark) {
  Channel& channel = draft_.out->channels.back();
  channel.credits = count;
  if (count == 0 || (channel.kind == ChannelKind::port && count <= kMaxCredits)) return true;
  reports_.fail("credits", mark,
                channel.kind == ChannelKind::port
                    ? fmt::format("'credits' is {}; expected 0 to {}", count, kMaxCredits)
                    : "'credits' are for port channels");
  return false;
}

bool Declarations::switch_channel(NameId name, std::span<const int64_t> keys, const List& ranks,
                                  Mark mark, Mark ranks_mark) {
  if (!may_declare(mark)) return false;
  std::vector<int64_t> members;
  // Of more elements than ranks one is wrong, and a range may have more than memory holds.
  const int64_t most = std::min(ranks.count, int64_t{draft_.ranks()} + 1);
  for (int64_t i = 0; i < most; ++i) members.push_back(ranks[i]);
  std::vector<int64_t> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const auto complain = [&](std::string message) {
    reports_.fail("switch-ranks", ranks_mark, std::move(message));
    names_.poison(name);
    return false;
  };
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return complain(fmt::format("the switch lists rank {} twice", *twice));
  }
  for (const int64_t r : sorted) {
    if (r < 0 || r >= static_cast<int64_t>(draft_.ranks())) {
      return complain(fmt::format("the switch lists rank {}, which is not a rank", r));
    }
  }
  if (!std::ranges::binary_search(sorted, static_cast<int64_t>(draft_.rank))) {
    return complain(
        fmt::format("the switch of rank {} does not list rank {}", draft_.rank, draft_.rank));
  }
  if (!members_.add(name, DeclKind::channel, keys, next_channel(), mark)) return false;
  Channel c;
  c.kind = ChannelKind::switch_;
  c.label = {name, draft_.program.append(keys)};
  c.group = draft_.program.append(members);
  c.declared = reports_.span(mark);
  draft_.out->channels.push_back(c);
  pairing_.add_channel();
  return true;
}

// ---- semaphores ------------------------------------------------------------------------------

bool Declarations::semaphore(NameId name, std::span<const int64_t> keys, int64_t initial,
                             Mark mark) {
  if (!may_declare(mark)) return false;
  if (initial < 0 || initial > kMaxChunks) {
    reports_.fail("semaphore-value", mark,
                  fmt::format("a semaphore begins with 0 to {}, not {}", kMaxChunks, initial));
    names_.poison(name);
    return false;
  }
  const auto index = static_cast<uint32_t>(draft_.out->semaphores.size());
  if (!members_.add(name, DeclKind::semaphore, keys, index, mark)) return false;
  Semaphore sem;
  sem.label = {name, draft_.program.append(keys)};
  sem.initial = static_cast<uint32_t>(initial);
  sem.declared = reports_.span(mark);
  draft_.out->semaphores.push_back(sem);
  return true;
}

}  // namespace mscclc
