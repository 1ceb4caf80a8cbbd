// The C++ front end, for programs that generate programs, and for the unroller of `.mscl` text. All
// checks of a program's meaning are made inside these calls.
//
//   Builder b(diagnostics);
//   b.collective({.kind = CollectiveKind::allgather, .ranks = 2, .chunks = {1}});
//   for (uint32_t r = 0; r < 2; ++r) {  // first declare what every rank owns …
//     b.rank(r);
//     b.channel(ChannelKind::memory, b.intern("ch"), {}, 1 - r);
//   }
//   for (uint32_t r = 0; r < 2; ++r) {  // … then write its ops
//     b.rank(r);
//     b.block(0);
//     b.op(OpKind::put, {b.far("ch", {}, "output", {r})}, {b.local("input")});
//   }
//   std::optional<Program> program = b.finish();
//
// Declarations of all ranks come before the first op of any, so that a far chunk is checked where
// it is written. Mistakes go to the Diagnostics; calls after one are safe, and finish() then gives
// nothing.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/builder/draft/operands.h"

namespace mscclc {

class BuilderState;

class Builder {
 public:
  /// Without `origin`, places come from at(); they appear in messages if `sources` is given.
  explicit Builder(Diagnostics& diagnostics, Origin* origin = nullptr, Sources* sources = nullptr);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  // ---- header ----
  /// Name, description and select need no checks: set them here.
  Program& program();
  NameId intern(std::string_view name);
  /// Checks the contract and makes its ranks. Must come before everything below.
  bool collective(const CollectiveSpec& spec);
  /// One line of a custom contract.
  bool ensure(Promise promise, Mark mark = {});
  /// Checks what the program has of row functions and externals, which stand in program(), and what
  /// the contract says of them. Before the first op.
  bool rows(Mark mark = {});
  bool launch(const Launch& launch, const LaunchMarks& marks = {});
  /// The number of ops at which the builder gives up.
  void set_max_ops(uint64_t max_ops);
  /// True once max_ops is exceeded: further work is pointless.
  bool gave_up() const;

  /// Checks the arrays of flags that stand in program(). `marks`: of each, or none.
  bool flags(std::span<const Mark> marks = {});

  // ---- declarations ----
  /// What follows belongs to this rank. Before the first op: declarations; afterwards: ops.
  void rank(uint32_t rank);
  bool buffer(NameId name, std::span<const Dim> dims, BufferOptions options = {}, Mark mark = {},
              Mark dims_mark = {});
  /// A buffer of `dims` dimensions whose rows differ in length.
  bool ragged_buffer(NameId name, const Rows& rows, uint32_t dims, BufferOptions options = {},
                     Mark mark = {}, Mark dims_mark = {});
  bool channel(ChannelKind kind, NameId name, std::span<const int64_t> keys, int64_t peer,
               Mark mark = {}, Mark peer_mark = {});
  /// Signals that waits at the channel declared last may take before any is given.
  bool credits(uint32_t count, Mark mark = {});
  /// Names the peer's end that the channel declared last is joined with (`to`).
  void connect(NameId name, std::span<const int64_t> keys, Mark mark = {});
  bool switch_channel(NameId name, std::span<const int64_t> keys, const List& ranks, Mark mark = {},
                      Mark ranks_mark = {});
  bool semaphore(NameId name, std::span<const int64_t> keys, int64_t initial = 0, Mark mark = {});
  /// Declaring something of this name has failed: references to it are not reported.
  void poison(NameId name);
  /// Ends the declarations: pairs the ends of channels. The first op does so implicitly.
  void seal();

  // ---- operands ----
  // Each fills `out`; a mistake is reported and makes the op that gets it fail silently.
  void chunk(NameId buffer, Mark buffer_mark, std::span<const Index> index, Mark mark, Ref& out);
  void channel_end(NameId channel, std::span<const int64_t> keys, Mark mark, Ref& out);
  /// A chunk at the far end of a channel, or at a switch.
  void far_chunk(NameId channel, std::span<const int64_t> keys, Mark channel_mark, NameId buffer,
                 Mark buffer_mark, std::span<const Index> index, Mark mark, Ref& out);
  void semaphore_ref(NameId semaphore, std::span<const int64_t> keys, Mark mark, Ref& out);
  /// Rows of an external, counted as chunks of the output are. REQUIRES: rows().
  void external_rows(uint32_t external, std::span<const Index> index, Mark mark, Ref& out);

  /// A flag of an array. REQUIRES: flags().
  void flag(uint32_t array, int64_t index, Mark mark, Ref& out);

  Ref local(std::string_view buffer, std::initializer_list<Index> index = {});
  Ref far(std::string_view channel, std::initializer_list<int64_t> keys, std::string_view buffer,
          std::initializer_list<Index> index = {});
  Ref end(std::string_view channel, std::initializer_list<int64_t> keys = {});
  Ref sem(std::string_view semaphore, std::initializer_list<int64_t> keys = {});

  // ---- places of ops ----
  /// The ops that follow stand in this block, in this group of blocks, or nowhere yet.
  bool block(int64_t block, Mark mark = {});
  bool group(const List& blocks, Mark mark = {});
  void no_place();
  /// The ops that follow stand in a pipeline, until end_pipeline().
  bool pipeline(int64_t unit, int64_t chunks = 1, Mark unit_mark = {}, Mark chunks_mark = {});
  void end_pipeline();
  /// Continues a pipeline of this rank that was left; present_pipeline() names it. It is an error
  /// if it was begun with another unit or number of chunks.
  bool resume_pipeline(uint32_t loop, int64_t unit, int64_t chunks, Mark mark = {});
  uint32_t present_pipeline() const;

  // ---- ops ----
  /// The place in the text of the ops that follow: a site of the program and the values of its
  /// variables, or several such places.
  void at_site(uint32_t site, Slice values);
  void at_locations(Slice locations);
  /// The site of this place and these variables, made once.
  uint32_t site_id(Site site);
  /// The same for C++ programs: file and line of the call, and variables that distinguish ops.
  void at(std::initializer_list<std::pair<std::string_view, int64_t>> variables = {},
          const char* file = __builtin_FILE(), uint32_t line = __builtin_LINE());
  /// Checks and appends an op to the present rank. One that has nothing to do is left out, a
  /// reduction of one source becomes a copy.
  bool op(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
          const OpOptions& options = {});
  bool op(OpKind kind, std::initializer_list<Ref> dsts, std::initializer_list<Ref> srcs = {},
          const OpOptions& options = {});
  /// Checks and appends an `apply` of a row function: a chunk or an external for each of its
  /// results and parameters. REQUIRES: rows().
  bool apply(uint32_t function, std::span<const Ref> results, std::span<const Ref> params,
             const OpOptions& options = {});
  /// The same of an op that adds up, and hands its sum to a row function before it is stored.
  /// REQUIRES: may_apply(info(kind)), rows().
  bool op_then(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
               const ThenRows& then, const OpOptions& options = {});
  /// Blocks meet: the arrival of the present block, or of each of them outside blocks.
  bool barrier(const List& blocks, Mark mark = {});

  /// Checks what only the whole program shows (bodies, balance of signals, promises), and returns
  /// the program; nothing after errors.
  std::optional<Program> finish();
  /// Only the checks; false after errors.
  bool check();
  /// The parts (builder_state.h), for callers that look operands up in their own way.
  BuilderState& state() { return *state_; }
  const BuilderState& state() const { return *state_; }

 private:
  std::unique_ptr<BuilderState> state_;
};

}  // namespace mscclc
