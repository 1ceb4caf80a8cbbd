// Operands: from names, keys and indexes to chunks, ends of channels, semaphores.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/builder_state.h"

namespace mscclc {

/// Reports that `id` is not what is needed on `of_rank`. Always false.
bool BuilderState::wrong_kind(uint32_t of_rank, NameId id, DeclKind wanted, Mark mark) {
  static constexpr std::string_view kWords[] = {"name", "buffer", "channel", "semaphore"};
  if (is_poisoned(id)) return false;
  const Decl found = decl(of_rank, id);
  const std::string_view want = kWords[static_cast<size_t>(wanted)];
  if (found.kind == DeclKind::none) {
    fail("unknown-name", mark, fmt::format("rank {} has no {} '{}'", of_rank, want, name(id)));
    return false;
  }
  Diagnostic& d = fail("wrong-kind", mark,
                       fmt::format("'{}' is a {}; expected a {}", name(id),
                                   kWords[static_cast<size_t>(found.kind)], want));
  const RankState& r = ranks[of_rank];
  if (found.kind != DeclKind::buffer) {
    note(d, r.families[found.index].mark, fmt::format("'{}' is declared here", name(id)));
  } else if (found.index >= kFirstScratch) {
    d.notes.push_back({fmt::format("'{}' is declared here", name(id)),
                       program.ranks[of_rank].buffers[found.index].declared});
  }
  return false;
}

/// Fills the chunk part of a reference to `buffer` as `owner` declares it.
void BuilderState::fill_chunk(Ref& ref, uint32_t owner, NameId buffer, Mark buffer_mark,
                              std::span<const Index> index) {
  const Decl d = decl(owner, buffer);
  if (d.kind != DeclKind::buffer) {
    wrong_kind(owner, buffer, DeclKind::buffer, buffer_mark);
    return;
  }
  const Layout& layout = ranks[owner].layouts[d.index];
  if (layout.chunks == 0 && d.index < kFirstScratch && layout.row_count == 0) {
    Diagnostic& error = fail("no-such-buffer", ref.mark,
                             fmt::format("'{}' does not exist on rank {}", name(buffer), owner));
    note(error, kind_mark, fmt::format("'{}' has none there", mscclc::name(program.contract.kind)));
    return;
  }
  if (!locate(owner, d.index, index, ref.mark, ref.operand)) return;
  ref.traits = (ref.traits & (kKindTraits | kChannelTraits)) | layout.traits;
}

/// Finds a member of a family of this rank.
uint32_t BuilderState::member(DeclKind kind, NameId id, std::span<const int64_t> keys, Mark mark) {
  const Decl d = id < here->decls.size() ? here->decls[id] : Decl{};
  if (d.kind != kind) return no_member(kind, id, keys, mark);
  const Family& f = here->families[d.index];
  if (f.keys != keys.size()) return no_member(kind, id, keys, mark);
  const uint32_t found = find_member(rank, kind, f, keys);
  return found != kNone ? found : no_member(kind, id, keys, mark);
}

/// Reports why there is no such member. Always kNone.
uint32_t BuilderState::no_member(DeclKind kind, NameId id, std::span<const int64_t> keys,
                                 Mark mark) {
  const Decl d = decl(rank, id);
  if (is_poisoned(id)) return kNone;
  if (d.kind != kind) {
    wrong_kind(rank, id, kind, mark);
    return kNone;
  }
  const Family& f = here->families[d.index];
  if (f.keys != keys.size()) {
    wrong_keys(f, keys.size(), mark);
    return kNone;
  }
  Diagnostic& error =
      fail("no-such-key", mark,
           fmt::format("rank {} has no '{}{}'", rank, name(id), list_text(List::stored(keys))));
  note(error, f.mark, fmt::format("'{}' is declared here", name(id)));
  return kNone;
}

Diagnostic& BuilderState::wrong_keys(const Family& f, size_t given, Mark mark) {
  Diagnostic& error =
      fail("key-count", mark,
           fmt::format("'{}' has {}; {} given", name(f.name), counted(f.keys, "key"),
                       given == 1 ? "1 is" : fmt::format("{} are", given)));
  note(error, f.mark, fmt::format("'{}' is declared here", name(f.name)));
  return error;
}

void Builder::chunk(NameId buffer, Mark buffer_mark, std::span<const Index> index, Mark mark,
                    Ref& ref) {
  ref.operand.channel = kNone;
  ref.traits = kInvalidTrait;
  ref.set_kind(SlotKind::local);
  ref.mark = mark;
  state_->fill_chunk(ref, state_->rank, buffer, buffer_mark, index);
}

void Builder::channel_end(NameId channel, std::span<const int64_t> keys, Mark mark, Ref& ref) {
  BuilderState& s = *state_;
  if (!s.sealed) seal();
  const uint32_t found = s.member(DeclKind::channel, channel, keys, mark);
  ref.operand = {found, kNone, 0, 0};
  ref.traits = kInvalidTrait;
  ref.mark = mark;
  if (found == kNone) return;
  ref.traits = channel_trait(s.out->channels[found].kind);
  ref.set_kind(SlotKind::channel);
}

void Builder::far_chunk(NameId channel, std::span<const int64_t> keys, Mark channel_mark,
                        NameId buffer, Mark buffer_mark, std::span<const Index> index, Mark mark,
                        Ref& ref) {
  BuilderState& s = *state_;
  if (!s.sealed) seal();
  const uint32_t found = s.member(DeclKind::channel, channel, keys, channel_mark);
  ref.traits = kInvalidTrait;
  if (found == kNone) return;
  ref.mark = mark;
  ref.operand.channel = found;
  const Channel& c = s.out->channels[found];
  ref.traits |= channel_trait(c.kind);
  if (c.kind != ChannelKind::switch_) {
    ref.set_kind(SlotKind::remote);
    s.fill_chunk(ref, c.peer, buffer, buffer_mark, index);
    return;
  }
  ref.set_kind(SlotKind::switched);
  s.fill_chunk(ref, s.rank, buffer, buffer_mark, index);
  if (ref.valid() && !s.check_at_switch(c, found, ref)) ref.traits |= kInvalidTrait;
}

/// Is a buffer of the caller's cut alike at a rank and at this one?
bool BuilderState::lies_alike(BufferKind kind, uint32_t member) const {
  if (kind == BufferKind::scratch) return true;
  const Side side = kind == BufferKind::input ? Side::input : Side::output;
  return program.contract.laid_out_alike(side, rank, member);
}

/// A buffer that is used at a switch must be the same on all its ranks.
bool BuilderState::check_at_switch(const Channel& c, uint32_t index, const Ref& ref) {
  if (switch_seen == std::pair(index, ref.operand.buffer)) return true;
  const Buffer& mine = out->buffers[ref.operand.buffer];
  for (const int64_t m : program.values(c.group)) {
    const auto member = static_cast<uint32_t>(m);
    const Decl d = decl(member, mine.name);
    if (d.kind != DeclKind::buffer)
      return wrong_kind(member, mine.name, DeclKind::buffer, ref.mark);
    const Buffer& theirs = program.ranks[member].buffers[d.index];
    if (theirs.chunks == mine.chunks && theirs.packets == mine.packets &&
        theirs.copies == mine.copies && theirs.units == mine.units &&
        std::ranges::equal(program.values(theirs.dims), program.values(mine.dims)) &&
        lies_alike(mine.kind, member)) {
      continue;
    }
    Diagnostic& error = fail("switch-buffer", ref.mark,
                             fmt::format("'{}' differs between ranks {} and {} of the switch",
                                         name(mine.name), rank, member));
    note_buffer(error, rank, ref.operand.buffer);
    note_buffer(error, member, d.index);
    return false;
  }
  switch_seen = {index, ref.operand.buffer};
  return true;
}

void Builder::semaphore_ref(NameId semaphore, std::span<const int64_t> keys, Mark mark, Ref& ref) {
  BuilderState& s = *state_;
  if (!s.sealed) seal();
  const uint32_t found = s.member(DeclKind::semaphore, semaphore, keys, mark);
  ref.operand = {kNone, kNone, found, 0};
  ref.traits = found == kNone ? uint32_t{kInvalidTrait} : 0;
  ref.set_kind(SlotKind::semaphore);
  ref.mark = mark;
}

// ---- by name, for C++ programs ---------------------------------------------------------------

Ref Builder::local(std::string_view buffer, std::initializer_list<Index> index) {
  Ref ref;
  if (state_->ready()) chunk(intern(buffer), {}, {index.begin(), index.size()}, {}, ref);
  return ref;
}

Ref Builder::far(std::string_view channel, std::initializer_list<int64_t> keys,
                 std::string_view buffer, std::initializer_list<Index> index) {
  Ref ref;
  if (!state_->ready()) return ref;
  far_chunk(intern(channel), {keys.begin(), keys.size()}, {}, intern(buffer), {},
            {index.begin(), index.size()}, {}, ref);
  return ref;
}

Ref Builder::end(std::string_view channel, std::initializer_list<int64_t> keys) {
  Ref ref;
  if (state_->ready()) channel_end(intern(channel), {keys.begin(), keys.size()}, {}, ref);
  return ref;
}

Ref Builder::sem(std::string_view semaphore, std::initializer_list<int64_t> keys) {
  Ref ref;
  if (state_->ready()) semaphore_ref(intern(semaphore), {keys.begin(), keys.size()}, {}, ref);
  return ref;
}

}  // namespace mscclc
