// What the builder keeps besides the program: how names, indexes and keys of each rank are looked
// up, and what is counted for the checks at the end. Private to builder_*.cc and unroll_ops.cc.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/builder/builder_lookup.h"
#include "ir/program/rank_parts.h"

namespace mscclc {

/// Largest sizes that make sense; what is beyond is a mistake in the program.
inline constexpr uint32_t kMaxRanks = 65536, kMaxBlocks = 4096, kMaxCopies = 1024, kMaxUnits = 1024,
                          kMaxOperands = 65535;
inline constexpr int64_t kMaxChunks = 0x7fffffff;
inline constexpr uint64_t kMaxDeclared = uint64_t{1} << 24;  ///< of all ranks: some GiB
inline constexpr size_t kMaxArena = 0xf0000000u;             ///< operands are counted in 32 bits

/// Counts that must agree at the end, outside pipelines and in those of one ratio.
struct Tally {
  uint32_t rounds = 0;  ///< class of pipelines (BuilderState::round_class), 0: outside
  uint32_t count = 0;
};

/// What the builder knows of a channel's end.
struct ChannelEnd {
  uint32_t to = kNone;                      ///< in BuilderState::links
  uint32_t sender = kNone, waiter = kNone;  ///< block, or kGroupOwner | group
  Tally signals, waits;
  bool ambiguous = false;  ///< several ends of the peer could be its partner
  bool broken = false;     ///< a mistake about its partner has been reported
  Mark mark;
};
inline constexpr uint32_t kGroupOwner = 0x80000000u;

struct SemaphoreCount {
  Tally releases, acquires;
  Mark mark;
};

struct NamedLink {
  NameId name;
  Slice keys;  ///< in BuilderState::link_keys
  Mark mark;
};

struct RankState {
  std::vector<Decl> decls;  ///< by NameId
  std::vector<Layout> layouts;
  std::vector<Family> families;
  std::vector<ChannelEnd> ends;
  std::vector<SemaphoreCount> semaphores;
  bool entered = false;
};

/// A thread block of the present rank, for the warning about those without ops.
struct BlockUse {
  bool has_ops = false;
  Mark mark;  ///< of the `tb` that declares it, if one does
};
/// A mistake is reported once, so more of them show nothing new.
inline constexpr size_t kMaxEmptyBlocks = 4096;
struct EmptyBlock {
  uint32_t rank, block;
  Mark mark;
};

/// Keys of BuilderState::more_tallies.
inline uint64_t tally_key(uint32_t rank, uint32_t index) {
  return static_cast<uint64_t>(rank) << 32 | index;
}
inline constexpr uint64_t kWaitTally = uint64_t{1} << 63, kSemaphoreTally = uint64_t{1} << 62;

/// Operands per slot of one side.
struct SlotCounts {
  uint32_t n[3] = {0, 0, 0};
};

/// How the operands of an op fill its slots.
enum class Fit : uint8_t {
  wrong,              ///< not at all; reported
  nothing,            ///< there is nothing to do
  whole,              ///< as the table says
  no_far,             ///< a fused reduction without its far destinations …
  one_source,         ///< … or with one source …
  one_source_no_far,  ///< … or both
};

/// Operands of an op that were found right: kinds, formats and numbers, not chunks.
struct Accepted {
  static constexpr size_t kMost = 4;
  uint32_t dsts = kNone, srcs = 0;
  uint32_t traits[kMost] = {};
  bool same(std::span<const Ref> d, std::span<const Ref> s) const;
  void set(std::span<const Ref> d, std::span<const Ref> s);
};

/// What one walk over an op's operands shows.
struct OperandFacts {
  uint32_t traits = 0;
  uint32_t least = 0xffffffffu, most = 0;  ///< chunks of an operand
  void add(std::span<const Ref> refs) {
    for (const Ref& ref : refs) {
      traits |= ref.traits;
      least = std::min(least, ref.operand.count);
      most = std::max(most, ref.operand.count);
    }
  }
  bool any(uint32_t trait) const { return (traits & trait) != 0; }
  /// ChannelKinds of the operands.
  uint32_t channel_kinds() const { return (traits & kChannelTraits) >> 16; }
};

struct BuilderState {
  class CallOrigin;
  BuilderState(Diagnostics& diagnostics_in, Origin* origin_in, Sources* sources);
  ~BuilderState();

  Diagnostics& diagnostics;
  Origin* origin;
  std::unique_ptr<Origin> own_origin;
  Program program;
  std::vector<RankState> ranks;
  bool has_contract = false, flat = false, sealed = false, checked = false;
  bool failed = false;  ///< an error was reported here
  NameId input_name = 0, output_name = 0;
  Mark kind_mark;                                      ///< of the contract
  std::map<std::vector<int64_t>, Mark> barrier_marks;  ///< by blocks: where first written
  std::vector<Mark> promise_marks;

  uint32_t rank = 0;
  RankState* here = nullptr;  ///< ranks[rank]
  Rank* out = nullptr;        ///< program.ranks[rank]

  // Arenas of the lookups.
  std::vector<Axis> axes;
  std::deque<std::vector<uint32_t>> axis_tables;
  std::deque<std::vector<int64_t>> axis_elements;
  std::vector<int64_t> boxes;
  std::vector<uint32_t> tables, row_offsets;
  std::deque<RowNode> row_nodes;
  std::vector<NamedLink> links;
  std::vector<int64_t> link_keys;
  std::vector<bool> poisoned;  ///< by NameId

  // Where ops go.
  uint32_t block = kNone, group = kNone, loop = kNone, rounds = 0;
  std::map<std::vector<int64_t>, uint32_t> groups;  ///< of their blocks
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> round_classes;
  uint64_t unit = 0;
  uint32_t loop_chunks = 0;
  /// Tallies beyond the first class: (rank, kind and index, class) -> count.
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> more_tallies;

  // Location of the ops that follow.
  uint32_t site = kNone;
  Slice values, locations;
  std::map<std::vector<uint32_t>, uint32_t> sites;  ///< of file, line, column, variables

  uint64_t ops = 0, blocks = 0, declared = 0, max_ops = 64'000'000;
  std::vector<BlockUse> block_uses;      ///< by block of the present rank
  std::vector<EmptyBlock> empty_blocks;  ///< seen on leaving a rank
  std::vector<Accepted> accepted = std::vector<Accepted>(op_table().size());  ///< by OpKind
  bool gave_up = false;
  std::vector<Axis> axis_scratch;
  std::vector<std::pair<std::vector<int64_t>, uint32_t>> known_dims;  ///< of callers' buffers
  Axis last_axis;
  std::pair<uint32_t, uint32_t> switch_seen{kNone, kNone};  ///< channel, buffer checked last

  /// Contract::size_class without its look-ups: chunk % modulus, of input and of output.
  uint32_t modulus[2] = {kNone, kNone};
  bool input_writable = false;
  std::span<const OpInfo> table = op_table();

  // Errors: `fail` adds the context; the caller adds the declaration and the remedy.
  Diagnostic& fail(std::string code, Mark mark, std::string message);
  Diagnostic& warn(std::string code, Mark mark, std::string message);
  void note(Diagnostic& d, Mark mark, std::string text);
  /// Adds "'inbox' is declared here as [others, B], which is …".
  void note_buffer(Diagnostic& d, uint32_t rank, uint32_t buffer);

  Decl decl(uint32_t of_rank, NameId name) const {
    const RankState& r = ranks[of_rank];
    return name < r.decls.size() ? r.decls[name] : Decl{};
  }
  void poison(NameId name) {
    failed = true;
    if (name >= poisoned.size()) poisoned.resize(name + 1);
    poisoned[name] = true;
  }
  bool is_poisoned(NameId name) const { return name < poisoned.size() && poisoned[name]; }
  std::string_view name(NameId id) const { return program.name_of(id); }
  /// Enters a name of the present rank; reports if it means something already.
  bool declare(NameId id, DeclKind kind, uint32_t index, Mark mark, Mark old_mark);
  std::string label(uint32_t of_rank, uint32_t channel) const {
    return program.text(program.ranks[of_rank].channels[channel].label);
  }

  bool may_declare(Mark mark);
  /// Makes room for a block of the present rank; false once there are too many in all.
  bool need_block(uint32_t block);
  /// Notes which blocks of the present rank have no ops so far.
  void leave_rank();
  bool ready() {
    if (here == nullptr) fail("rank", {}, "an op outside a rank");
    return here != nullptr;
  }
  bool placed() const { return block != kNone || group != kNone; }
  uint32_t rounds_of(const Loop& loop) const;

  // builder_declare.cc
  void reserve_like(uint32_t other);
  Family* family(NameId id, DeclKind kind, size_t keys, Mark mark);
  void add_member(Family& family, std::span<const int64_t> keys, uint32_t index);
  void check_nodes(const Channel& c, Mark mark);
  void check_sentinel(Mark mark);

  // builder_layout.cc
  Axis make_axis(const Dim& dim);
  Axis table_axis(std::span<const int64_t> elements);
  uint32_t caller_axes(std::span<const int64_t> dims, uint32_t chunks);
  bool copy_caller_buffer(Side side);
  void add_caller_buffer(Side side);
  bool check_axis(NameId buffer, const Axis& axis, Mark mark);
  bool add_layout(std::span<Axis> dims, Mark dims_mark, NameId name_id, Mark mark);
  bool add_tree(const Rows& rows, uint32_t dims, Mark dims_mark, NameId name_id, Mark mark);
  uint32_t add_rows(const Rows& rows, NameId name_id, Mark mark, uint64_t& chunks);
  void add_caller_buffers();
  Slice name_rows(std::span<const Axis> dims);
  bool may_be_buffer(const BufferOptions& options, Mark mark);
  void add_buffer(Buffer buffer, const BufferOptions& options, Mark mark);
  std::string dims_text(uint32_t of_rank, uint32_t buffer) const;
  bool no_such_index(uint32_t owner, uint32_t buffer, uint32_t dim, int64_t value, Mark mark);
  bool find_run(uint32_t owner, uint32_t buffer, uint32_t dim, const Axis& axis, const Index& index,
                Mark mark, uint32_t& first, uint32_t& count);
  /// Flat run of chunks of a reference; false after reporting.
  bool locate(uint32_t owner, uint32_t buffer, std::span<const Index> index, Mark mark,
              Operand& out);
  bool locate_ragged(uint32_t owner, uint32_t buffer, std::span<const Index> index, Mark mark,
                     Operand& out);
  bool locate_in_tree(uint32_t owner, uint32_t buffer, std::span<const Index> index, Mark mark,
                      Operand& out);
  void prepare_classes();
  uint64_t size_class(uint32_t owner, uint32_t buffer, uint32_t chunk) const;

  // builder_pair.cc
  std::span<const int64_t> member_keys(uint32_t of_rank, DeclKind kind, uint32_t index) const;
  void close_box(Family& f);
  void build_tables(uint32_t of_rank);
  void report_twice(uint32_t of_rank, DeclKind kind, uint32_t index);
  uint32_t find_sparse(uint32_t of_rank, DeclKind kind, const Family& f,
                       std::span<const int64_t> keys) const;
  Diagnostic& wrong_keys(const Family& f, size_t given, Mark mark);
  void wrong_far_keys(uint32_t peer, uint32_t of_rank, const Family& f, const NamedLink& link);
  uint32_t linked_end(uint32_t of_rank, const Channel& c, const NamedLink& link);
  void default_ends(NameId id);
  bool named_back(uint32_t of_rank, uint32_t index);
  void check_switch(uint32_t of_rank, uint32_t index);
  void pair_channels();
  /// Index in a dense family's table, or beyond every table if the keys lie outside its box.
  size_t box_index(const Family& f, std::span<const int64_t> keys) const {
    const int64_t* box = boxes.data() + f.box;
    size_t at = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const uint64_t d = static_cast<uint64_t>(keys[i]) - static_cast<uint64_t>(box[2 * i]);
      const auto extent = static_cast<uint64_t>(box[2 * i + 1]);
      if (d >= extent) return ~size_t{0};
      at = at * extent + d;
    }
    return at;
  }
  /// The member with these keys, or kNone. REQUIRES: as many keys as the family has.
  uint32_t find_member(uint32_t of_rank, DeclKind kind, const Family& f,
                       std::span<const int64_t> keys) const {
    if (f.keys == 0) return f.single;
    if (f.table == kNone) return find_sparse(of_rank, kind, f, keys);
    const size_t at = box_index(f, keys);
    return at == ~size_t{0} ? kNone : tables[f.table + at];
  }

  // builder_refs.cc
  bool wrong_kind(uint32_t of_rank, NameId id, DeclKind wanted, Mark mark);
  void fill_chunk(Ref& ref, uint32_t owner, NameId buffer, Mark buffer_mark,
                  std::span<const Index> index);
  /// True if indexes that are numbers are looked up by Axis::find alone.
  static bool fast(const Layout& layout, size_t indexes) {
    return !layout.unusual && indexes <= layout.dims;
  }
  uint32_t member(DeclKind kind, NameId id, std::span<const int64_t> keys, Mark mark);
  uint32_t no_member(DeclKind kind, NameId id, std::span<const int64_t> keys, Mark mark);
  bool check_at_switch(const Channel& c, uint32_t index, const Ref& ref);
  bool lies_alike(BufferKind kind, uint32_t member) const;

  // builder_ops.cc
  Fit fit(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
          const OperandFacts& facts, const OpOptions& options);
  bool reduce_less(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                   OpOptions options, Fit fit);
  void spread(const OpInfo& info, std::span<const Ref> dsts, const Ref& src,
              const OpOptions& options);
  bool without_empty(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                     const OpOptions& options);
  bool check_chunks(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                    const OperandFacts& facts);
  bool check_input(std::span<const Ref> dsts);
  bool check_coinciding(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                        const OpOptions& options);
  bool check_sizes(bool pairwise, std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool same_size(const Ref& a, const Ref& b);
  /// Adds how chunks of different sizes may be paired all the same.
  void note_even(Diagnostic& d);
  bool mixed_formats(std::span<const Ref> dsts, std::span<const Ref> srcs);
  void use_channels(const OpInfo& info, std::span<const Ref> refs);
  void use_semaphores(const OpInfo& info, std::span<const Ref> refs);
  void claim(uint32_t& side, uint32_t owner, std::string_view verb, const Ref& ref);
  void use(const OpInfo& info, std::span<const Ref> dsts);
  /// The locations of the present op; made once for all ops that it becomes.
  Slice present_locations() {
    if (site != kNone) {
      locations.count = 1;
      *program.locations.add(1, locations.first) = {site, values};
      site = kNone;
    }
    return locations;
  }
  /// Counts an op in; false once there are too many.
  bool room_for(size_t operands) {
    if (++ops <= max_ops && program.operands.size() + operands <= kMaxArena) return true;
    return too_many_ops();
  }
  bool too_many_ops();
  void append(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
              const OpOptions& options);
  bool arrive(uint32_t b, std::span<const Operand> members);
  bool barrier_members(const List& blocks, Mark mark, std::vector<Operand>& members);

  // builder_rows.cc
  void warn_of_unused_rows();

  // builder_parts.cc
  std::vector<uint32_t> take_groups(const BuilderState& part);
  std::vector<uint32_t> take_round_classes(const BuilderState& part);
  bool take_units(const BuilderState& part);
  void take_counts(BuilderState& part, RankRange of);
  void take_ops(BuilderState& part, RankRange of, const std::vector<uint32_t>& sites);
  /// Takes the ops of some ranks from a builder in which the same things were declared, and which
  /// had no mistakes. `sites`: by its site, ours. False after what only the whole shows to be
  /// wrong, which is not reported.
  bool take(BuilderState& part, RankRange of, const std::vector<uint32_t>& sites);

  // builder_explain.cc
  std::string ref_text(const Ref& ref);
  const Buffer& buffer_of(const Ref& ref) const;
  std::optional<OpKind> op_that_fits(std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool explain_operand(const OpInfo& info, const Slots& slots, bool is_dst, const Ref& ref,
                       std::string_view remedy);
  void explain_count(const OpInfo& info, const Slots& slots, bool is_dst, std::span<const Ref> refs,
                     std::string_view remedy);
  /// Reports why the operands do not fit the op. Always false.
  bool explain(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs);
  bool check_options(const OpInfo& info, const OpOptions& options, size_t sources);
  bool check_summation(const OpInfo& info, const OpOptions& options, size_t sources);
  bool check_channels(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                      const OperandFacts& facts);
  bool check_partners(const OpInfo& info, std::span<const Ref> refs) {
    for (const Ref& ref : refs) {
      const uint32_t partner = out->channels[ref.operand.channel].partner;
      if (partner == kNone && !program.foreign) return no_partner(info, ref);
    }
    return true;
  }
  bool no_partner(const OpInfo& info, const Ref& ref);
  bool wrong_count(const Ref& a, const Ref& b);
  bool check_units_option(const BufferOptions& options, Mark mark);
  bool check_units(std::span<const Ref> refs);
  bool take_unit_at_switch(const Channel& channel, const Ref& ref);
  bool take_unit(uint32_t owner, uint32_t index, Mark mark);
  uint32_t owner_of_buffer(const Operand& o) const;
  bool wrong_loop_count(std::span<const Ref> dsts, std::span<const Ref> srcs);
  std::string owner_text(uint32_t owner) const;
};

inline uint32_t channel_trait(ChannelKind kind) { return uint32_t{bit(kind)} << 16; }

/// Slots of the sources, given the destinations: a port sends packets as they are.
Slots effective_srcs(const OpInfo& info, std::span<const Ref> dsts);
/// True if the operands fit the slots in order.
bool match_slots(const Slots& slots, std::span<const Ref> refs);

/// "1 chunk", "8 chunks".
std::string counted(int64_t n, std::string_view noun);
/// "once", "twice", "3 times"; after another number, "three times" reads better.
std::string times(int64_t n, bool in_words = false);
/// "[1, 2, 3]", shortened in the middle if long.
std::string list_text(const List& list);
/// "0..4" if that is what it is.
std::string blocks_text(const List& list);

}  // namespace mscclc
