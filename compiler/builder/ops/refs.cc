#include "compiler/builder/ops/refs.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/precondition.h"

namespace mscclc {

/// Fills the chunk part of a reference to `buffer` as `owner` declares it.
void Refs::fill_chunk(Ref& ref, uint32_t owner, NameId buffer, Mark buffer_mark,
                      std::span<const Index> index) {
  const Decl d = names_.decl(owner, buffer);
  if (d.kind != DeclKind::buffer) {
    members_.wrong_kind(owner, buffer, DeclKind::buffer, buffer_mark);
    return;
  }
  const Layout& layout = layouts_.of(owner, d.index);
  if (layout.chunks == 0 && d.index < kFirstScratch && layout.row_count == 0) {
    Diagnostic& error =
        reports_.fail("no-such-buffer", ref.mark,
                      fmt::format("'{}' does not exist on rank {}", draft_.name(buffer), owner));
    reports_.note(error, draft_.kind_mark,
                  fmt::format("'{}' has none there", mscclc::name(draft_.program.contract.kind)));
    return;
  }
  if (!layouts_.locate(owner, d.index, index, ref.mark, ref.operand)) return;
  ref.traits = (ref.traits & (kKindTraits | kChannelTraits)) | layout.traits;
}

/// Is a buffer of the caller's cut alike at a rank and at this one?
bool Refs::lies_alike(BufferKind kind, uint32_t member) const {
  if (kind == BufferKind::scratch) return true;
  const Side side = kind == BufferKind::input ? Side::input : Side::output;
  return draft_.program.contract.laid_out_alike(side, draft_.rank, member);
}

/// A buffer that is used at a switch must be the same on all its ranks.
bool Refs::check_at_switch(const Channel& c, uint32_t index, const Ref& ref) {
  const std::tuple key{draft_.rank, index, ref.operand.buffer};
  if (switch_seen_ == key) return true;
  const Buffer& mine = draft_.out->buffers[ref.operand.buffer];
  for (const int64_t m : draft_.program.values(c.group)) {
    const auto member = static_cast<uint32_t>(m);
    const Decl d = names_.decl(member, mine.name);
    if (d.kind != DeclKind::buffer)
      return members_.wrong_kind(member, mine.name, DeclKind::buffer, ref.mark);
    const Buffer& theirs = draft_.program.ranks[member].buffers[d.index];
    if (theirs.chunks == mine.chunks && theirs.packets == mine.packets &&
        theirs.copies == mine.copies && theirs.units == mine.units && theirs.form == mine.form &&
        std::ranges::equal(draft_.program.values(theirs.dims), draft_.program.values(mine.dims)) &&
        lies_alike(mine.kind, member)) {
      continue;
    }
    Diagnostic& error =
        reports_.fail("switch-buffer", ref.mark,
                      fmt::format("'{}' differs between ranks {} and {} of the switch",
                                  draft_.name(mine.name), draft_.rank, member));
    layouts_.note_buffer(error, draft_.rank, ref.operand.buffer);
    layouts_.note_buffer(error, member, d.index);
    return false;
  }
  switch_seen_ = key;
  return true;
}

void Refs::chunk(NameId buffer, Mark buffer_mark, std::span<const Index> index, Mark mark,
                 Ref& ref) {
  ref.operand.channel = kNone;
  ref.traits = kInvalidTrait;
  ref.set_kind(SlotKind::local);
  ref.mark = mark;
  fill_chunk(ref, draft_.rank, buffer, buffer_mark, index);
}

void Refs::channel_end(NameId channel, std::span<const int64_t> keys, Mark mark, Ref& ref) {
  const uint32_t found = members_.member(DeclKind::channel, channel, keys, mark);
  ref.operand = {found, kNone, 0, 0};
  ref.traits = kInvalidTrait;
  ref.mark = mark;
  if (found == kNone) return;
  ref.traits = channel_trait(draft_.out->channels[found].kind);
  ref.set_kind(SlotKind::channel);
}

void Refs::far_chunk(NameId channel, std::span<const int64_t> keys, Mark channel_mark,
                     NameId buffer, Mark buffer_mark, std::span<const Index> index, Mark mark,
                     Ref& ref) {
  const uint32_t found = members_.member(DeclKind::channel, channel, keys, channel_mark);
  ref.traits = kInvalidTrait;
  if (found == kNone) return;
  ref.mark = mark;
  ref.operand.channel = found;
  const Channel& c = draft_.out->channels[found];
  ref.traits |= channel_trait(c.kind);
  if (c.kind != ChannelKind::switch_) {
    ref.set_kind(SlotKind::remote);
    fill_chunk(ref, c.peer, buffer, buffer_mark, index);
    return;
  }
  ref.set_kind(SlotKind::switched);
  fill_chunk(ref, draft_.rank, buffer, buffer_mark, index);
  if (ref.valid() && !check_at_switch(c, found, ref)) ref.traits |= kInvalidTrait;
}

void Refs::semaphore_ref(NameId semaphore, std::span<const int64_t> keys, Mark mark, Ref& ref) {
  const uint32_t found = members_.member(DeclKind::semaphore, semaphore, keys, mark);
  ref.operand = {kNone, kNone, found, 0};
  ref.traits = found == kNone ? uint32_t{kInvalidTrait} : 0;
  ref.set_kind(SlotKind::semaphore);
  ref.mark = mark;
}

void Refs::flag(uint32_t array, int64_t index, Mark mark, Ref& ref) {
  precondition(array < draft_.program.flags.size());
  const FlagArray& flags = draft_.program.flags[array];
  ref.traits = kInvalidTrait;
  ref.mark = mark;
  if (index < 0 || index >= int64_t{flags.count}) {
    reports_.fail("no-such-flag", mark,
                  fmt::format("'{}' has no flag {} (they go from 0 to {})", flags.name, index,
                              flags.count - 1));
    return;
  }
  ref.operand = {kNone, array, static_cast<uint32_t>(index), 0};
  ref.traits = 0;
  ref.set_kind(SlotKind::flag);
}

/// Chunks that indexes name in the shape of the output's part, all without one; of IR text they are
/// counted.
bool Refs::locate_rows(std::span<const Index> index, std::string_view name, Mark mark,
                       Operand& out) {
  const Contract& c = draft_.program.contract;
  const std::vector<uint32_t> dims =
      draft_.flat ? std::vector<uint32_t>{c.part_chunks()} : c.shape(Side::output, 0).dims;
  if (index.size() > dims.size()) {
    reports_.fail("index-count", mark,
                  fmt::format("'{}' has {} dimension{}; {} given", name, dims.size(),
                              dims.size() == 1 ? "" : "s", index.size()));
    return false;
  }
  out.first = 0;
  out.count = 1;
  for (size_t i = 0; i < index.size(); ++i) {
    const bool last = i + 1 == index.size();
    const int64_t first = index[i].first, count = index[i].count, size = dims[i];
    const bool begins = first >= 0 && first < size + (count == 0 ? 1 : 0);
    if (!begins || count > size - first) {
      reports_.fail("no-such-chunk", index[i].mark,
                    fmt::format("'{}' has no index {} (it goes from 0 to {})", name,
                                begins ? first + count - 1 : first, size - 1));
      return false;
    }
    if (!last && count != 1) {
      reports_.fail("index-count", index[i].mark,
                    fmt::format("only the last index of '{}' may be a range", name));
      return false;
    }
    out.first = out.first * dims[i] + static_cast<uint32_t>(index[i].first);
    out.count = static_cast<uint32_t>(index[i].count);
  }
  for (size_t i = index.size(); i < dims.size(); ++i) {
    out.first *= dims[i];
    out.count *= dims[i];
  }
  return true;
}

void Refs::external_rows(uint32_t external, std::span<const Index> index, Mark mark, Ref& ref) {
  precondition(external < draft_.program.externals.size());
  const rows::External& e = draft_.program.externals[external];
  ref.operand = {kNone, external, 0, 0};
  ref.traits = kInvalidTrait;
  ref.mark = mark;
  if (e.has_rows() ? !locate_rows(index, e.name, mark, ref.operand) : false) return;
  if (!e.has_rows() && !index.empty()) {
    reports_.fail("index-count", mark,
                  fmt::format("the external '{}' has no rows, so it takes no index", e.name));
    return;
  }
  ref.traits = kExternalTrait;
}

}  // namespace mscclc
