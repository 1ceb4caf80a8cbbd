// What a rank owns: buffers, its ends of channels, semaphores.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/builder_state.h"
#include "ir/print/row_names.h"

namespace mscclc {
namespace {

std::string_view kind_name(DeclKind kind) {
  switch (kind) {
    case DeclKind::buffer:
      return "buffer";
    case DeclKind::channel:
      return "channel";
    case DeclKind::semaphore:
      return "semaphore";
    case DeclKind::none:
      break;
  }
  return "name";
}

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

void Builder::rank(uint32_t rank) {
  BuilderState& s = *state_;
  s.block = s.group = s.loop = kNone;
  s.rounds = 0;
  if (rank >= s.ranks.size()) {
    s.fail("rank", {}, fmt::format("rank {} is not a rank; there are {}", rank, s.ranks.size()));
    return;
  }
  s.leave_rank();
  s.rank = rank;
  s.here = &s.ranks[rank];
  s.out = &s.program.ranks[rank];
  if (!s.here->entered) {
    s.here->entered = true;
    if (rank > 0) s.reserve_like(rank - 1);
    s.add_caller_buffers();
  }
  // Blocks that another visit made begin anew here; check() looks at the ops before it warns.
  if (s.out->blocks > s.block_uses.size()) s.block_uses.resize(s.out->blocks);
}

/// Ranks are much alike.
void BuilderState::reserve_like(uint32_t other) {
  const RankState& like = ranks[other];
  here->decls.reserve(like.decls.size());
  here->layouts.reserve(like.layouts.size());
  here->families.reserve(like.families.size());
  here->ends.reserve(like.ends.size());
  here->semaphores.reserve(like.semaphores.size());
  out->buffers.reserve(like.layouts.size());
  out->channels.reserve(like.ends.size());
  out->semaphores.reserve(like.semaphores.size());
}

bool BuilderState::may_declare(Mark mark) {
  if (here == nullptr) {
    fail("rank", mark, "a declaration outside a rank");
    return false;
  }
  if (sealed) {
    fail("declaration-order", mark, "declare what every rank owns before the first op");
    return false;
  }
  if (gave_up) return false;
  if (++declared > kMaxDeclared) {
    fail("too-many-ops", mark,
         fmt::format("more than {} buffers, channels and semaphores", kMaxDeclared));
    gave_up = true;
    return false;
  }
  return true;
}

bool BuilderState::declare(NameId id, DeclKind kind, uint32_t index, Mark mark, Mark old_mark) {
  if (id >= here->decls.size())
    here->decls.resize(std::max<size_t>(id + 1, 2 * here->decls.size()));
  Decl& decl = here->decls[id];
  if (decl.kind != DeclKind::none) {
    Diagnostic& d = fail("redeclared", mark, fmt::format("'{}' is already declared", name(id)));
    if (old_mark.end != 0) note(d, old_mark, fmt::format("'{}' is declared here", name(id)));
    return false;
  }
  decl = {kind, index};
  return true;
}

void Builder::poison(NameId name) { state_->poison(name); }

// ---- buffers ---------------------------------------------------------------------------------

bool Builder::buffer(NameId name, std::span<const Dim> dims, BufferOptions options, Mark mark,
                     Mark dims_mark) {
  BuilderState& s = *state_;
  if (!s.may_be_buffer(options, mark)) return false;
  std::vector<Axis>& axes = s.axis_scratch;
  axes.clear();
  for (const Dim& dim : dims) {
    axes.push_back(s.make_axis(dim));
    if (!s.check_axis(name, axes.back(), mark)) return false;
  }
  const auto index = static_cast<uint32_t>(s.out->buffers.size());
  if (!s.declare(name, DeclKind::buffer, index, mark, {})) return false;
  if (!s.add_layout(axes, dims_mark, name, mark)) {
    poison(name);
    return false;
  }
  Buffer b;
  b.name = name;
  b.chunks = 1;
  for (const Axis& axis : axes) {
    s.program.integers.extend(b.dims, axis.length());
    b.chunks *= static_cast<uint32_t>(axis.length());
  }
  b.rows = s.name_rows(axes);
  s.add_buffer(b, options, mark);
  return true;
}

bool Builder::ragged_buffer(NameId name, const Rows& rows, uint32_t dims, BufferOptions options,
                            Mark mark, Mark dims_mark) {
  BuilderState& s = *state_;
  if (!s.may_be_buffer(options, mark)) return false;
  const auto index = static_cast<uint32_t>(s.out->buffers.size());
  if (!s.declare(name, DeclKind::buffer, index, mark, {})) return false;
  if (!s.add_tree(rows, dims, dims_mark, name, mark)) {
    poison(name);
    return false;
  }
  Buffer b;
  b.name = name;
  b.chunks = s.here->layouts.back().chunks;
  s.program.integers.extend(b.dims, b.chunks);
  std::vector<int64_t> indices, above;
  list_rows(rows, dims, above, indices);
  RowNames names(s.program);
  if (!indices.empty()) names.tuples(dims, indices);
  b.rows = names.take();
  s.add_buffer(b, options, mark);
  return true;
}

/// What messages call the rows of a buffer with these dimensions.
Slice BuilderState::name_rows(std::span<const Axis> dims) {
  const auto plain = [](const Axis& axis) {
    return axis.list.data == nullptr && axis.list.first == 0 && axis.list.hole >= axis.list.count;
  };
  if (std::ranges::all_of(dims, plain)) return {};
  RowNames names(program);
  for (const Axis& axis : dims) {
    const List& list = axis.list;
    if (list.data != nullptr) {
      names.list({list.data, static_cast<size_t>(list.count)});
    } else {
      names.range(list.count, list.first, list.hole < list.count ? list.hole : -1);
    }
  }
  return names.take();
}

bool BuilderState::may_be_buffer(const BufferOptions& options, Mark mark) {
  if (!may_declare(mark)) return false;
  if (options.copies < 1 || options.copies > kMaxCopies) {
    fail("copies", mark,
         fmt::format("'copies' is {}; expected 1 to {}", options.copies, kMaxCopies));
    return false;
  }
  return !options.has_units || check_units_option(options, mark);
}

/// Adds a buffer whose layout is the last one of this rank.
void BuilderState::add_buffer(Buffer b, const BufferOptions& options, Mark mark) {
  b.packets = options.packets;
  b.copies = options.copies;
  b.units = options.units;
  Layout& layout = here->layouts.back();
  if (options.packets != PacketFormat::none) {
    layout.traits = kPacketTrait | 0x100u << static_cast<int>(options.packets);
  }
  if (options.units != 0) layout.traits = kUnitsTrait;
  b.declared = origin->span(mark);
  out->buffers.push_back(b);
  if (is_sentinel(options.packets)) check_sentinel(mark);
}

bool BuilderState::check_units_option(const BufferOptions& options, Mark mark) {
  if (options.units < 2 || options.units > kMaxUnits) {
    fail("units", mark, fmt::format("'units' is {}; expected 2 to {}", options.units, kMaxUnits));
    return false;
  }
  if (options.packets == PacketFormat::none && options.copies == 1) return true;
  fail("units", mark, "'units' cannot be combined with 'packets' or 'copies'");
  return false;
}

/// The sentinel is a value of a float type: the plan must be picked for no other.
void BuilderState::check_sentinel(Mark mark) {
  const std::vector<Dtype>& dtypes = program.select.dtypes;
  const bool good = !dtypes.empty() && std::ranges::all_of(dtypes, [](Dtype t) {
    return info(t).kind == DtypeKind::kFloat;
  });
  if (good || program.foreign) return;
  fail("sentinel-dtypes", mark, "sentinel packets need 'select dtypes:' of float types");
}

// ---- channels --------------------------------------------------------------------------------

/// The family that a new member joins: members of one name have keys, equally many, and one kind.
Family* BuilderState::family(NameId id, DeclKind kind, size_t keys, Mark mark) {
  const Decl known = decl(rank, id);
  if (known.kind == DeclKind::none) {
    const auto index = static_cast<uint32_t>(here->families.size());
    if (!declare(id, kind, index, mark, {})) return nullptr;
    Family& f = here->families.emplace_back();
    f.name = id;
    f.keys = static_cast<uint32_t>(keys);
    f.box = static_cast<uint32_t>(boxes.size());
    f.mark = mark;
    boxes.resize(boxes.size() + 2 * keys);
    return &f;
  }
  if (known.kind != kind) {
    fail("redeclared", mark,
         fmt::format("'{}' is already declared as a {}", name(id), kind_name(known.kind)));
    return nullptr;
  }
  Family& f = here->families[known.index];
  if (f.keys != keys || keys == 0) {
    Diagnostic& d = fail("redeclared", mark, fmt::format("'{}' is already declared", name(id)));
    note(d, f.mark, fmt::format("'{}' is declared here", name(id)));
    return nullptr;
  }
  return &f;
}

/// Counts a member and widens the box that its keys lie in.
void BuilderState::add_member(Family& f, std::span<const int64_t> keys, uint32_t index) {
  if (keys.empty()) f.single = index;
  for (size_t i = 0; i < keys.size(); ++i) {
    int64_t& low = boxes[f.box + 2 * i];
    int64_t& high = boxes[f.box + 2 * i + 1];
    low = f.count == 0 ? keys[i] : std::min(low, keys[i]);
    high = f.count == 0 ? keys[i] : std::max(high, keys[i]);
  }
  ++f.count;
}

bool Builder::channel(ChannelKind kind, NameId name, std::span<const int64_t> keys, int64_t peer,
                      Mark mark, Mark peer_mark) {
  BuilderState& s = *state_;
  if (!s.may_declare(mark)) return false;
  if (peer < 0 || peer >= static_cast<int64_t>(s.ranks.size())) {
    Diagnostic& d = s.fail("no-such-rank", peer_mark,
                           fmt::format("rank {} has no rank {} to talk to", s.rank, peer));
    s.note(d, s.kind_mark, fmt::format("there are {}", counted(s.ranks.size(), "rank")));
    poison(name);
    return false;
  }
  if (peer == s.rank) {
    s.fail("channel-to-itself", peer_mark, fmt::format("channel to itself on rank {}", s.rank));
    poison(name);
    return false;
  }
  Family* family = s.family(name, DeclKind::channel, keys.size(), mark);
  if (family == nullptr) return false;
  Channel c;
  c.kind = kind;
  c.label = {name, s.program.append(keys)};
  c.peer = static_cast<uint32_t>(peer);
  c.declared = s.origin->span(mark);
  s.add_member(*family, keys, static_cast<uint32_t>(s.out->channels.size()));
  if (kind == ChannelKind::memory) s.check_nodes(c, peer_mark);
  s.out->channels.push_back(c);
  s.here->ends.emplace_back().mark = mark;
  return true;
}

/// Memory channels do not leave a node; where 'select' says how nodes look, that shows here.
void BuilderState::check_nodes(const Channel& c, Mark mark) {
  const Select& select = program.select;
  const uint64_t gpus = select.gpus_per_node.min;
  if (gpus == 0 || select.gpus_per_node.max != gpus || select.nodes.max <= 1) return;
  if (rank / gpus == c.peer / gpus || program.foreign) return;
  Diagnostic& d = fail(
      "memory-between-nodes", mark,
      fmt::format("'{}' is a memory channel between two nodes; use 'port'", program.text(c.label)));
  note(d, mark,
       fmt::format("with {} a node, rank {} is on node {}, rank {} on node {}",
                   counted(static_cast<int64_t>(gpus), "GPU"), rank, rank / gpus, c.peer,
                   c.peer / gpus));
}

bool Builder::credits(uint32_t count, Mark mark) {
  BuilderState& s = *state_;
  Channel& channel = s.out->channels.back();
  channel.credits = count;
  if (count == 0 || (channel.kind == ChannelKind::port && count <= kMaxCredits)) return true;
  s.fail("credits", mark,
         channel.kind == ChannelKind::port
             ? fmt::format("'credits' is {}; expected 0 to {}", count, kMaxCredits)
             : "'credits' are for port channels");
  return false;
}

void Builder::connect(NameId name, std::span<const int64_t> keys, Mark mark) {
  BuilderState& s = *state_;
  NamedLink link{
      name, {static_cast<uint32_t>(s.link_keys.size()), static_cast<uint32_t>(keys.size())}, mark};
  s.link_keys.insert(s.link_keys.end(), keys.begin(), keys.end());
  s.here->ends.back().to = static_cast<uint32_t>(s.links.size());
  s.links.push_back(link);
}

bool Builder::switch_channel(NameId name, std::span<const int64_t> keys, const List& ranks,
                             Mark mark, Mark ranks_mark) {
  BuilderState& s = *state_;
  if (!s.may_declare(mark)) return false;
  std::vector<int64_t> members;
  for (int64_t i = 0; i < ranks.count; ++i) members.push_back(ranks[i]);
  std::vector<int64_t> sorted = members;
  std::sort(sorted.begin(), sorted.end());
  const auto complain = [&](std::string message) {
    s.fail("switch-ranks", ranks_mark, std::move(message));
    poison(name);
    return false;
  };
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    return complain(fmt::format("the switch lists rank {} twice", *twice));
  }
  for (const int64_t r : sorted) {
    if (r < 0 || r >= static_cast<int64_t>(s.ranks.size())) {
      return complain(fmt::format("the switch lists rank {}, which is not a rank", r));
    }
  }
  if (!std::ranges::binary_search(sorted, static_cast<int64_t>(s.rank))) {
    return complain(fmt::format("the switch of rank {} does not list rank {}", s.rank, s.rank));
  }
  Family* family = s.family(name, DeclKind::channel, keys.size(), mark);
  if (family == nullptr) return false;
  Channel c;
  c.kind = ChannelKind::switch_;
  c.label = {name, s.program.append(keys)};
  c.group = s.program.append(members);
  c.declared = s.origin->span(mark);
  s.add_member(*family, keys, static_cast<uint32_t>(s.out->channels.size()));
  s.out->channels.push_back(c);
  s.here->ends.emplace_back().mark = mark;
  return true;
}

// ---- semaphores ------------------------------------------------------------------------------

bool Builder::semaphore(NameId name, std::span<const int64_t> keys, int64_t initial, Mark mark) {
  BuilderState& s = *state_;
  if (!s.may_declare(mark)) return false;
  if (initial < 0 || initial > kMaxChunks) {
    s.fail("semaphore-value", mark,
           fmt::format("a semaphore begins with 0 to {}, not {}", kMaxChunks, initial));
    poison(name);
    return false;
  }
  Family* family = s.family(name, DeclKind::semaphore, keys.size(), mark);
  if (family == nullptr) return false;
  s.add_member(*family, keys, static_cast<uint32_t>(s.out->semaphores.size()));
  Semaphore sem;
  sem.label = {name, s.program.append(keys)};
  sem.initial = static_cast<uint32_t>(initial);
  sem.declared = s.origin->span(mark);
  s.out->semaphores.push_back(sem);
  s.here->semaphores.emplace_back().mark = mark;
  return true;
}

}  // namespace mscclc
