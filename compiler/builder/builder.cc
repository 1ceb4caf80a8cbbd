// Each call goes to the part that does it (builder_state.h).
#include "compiler/builder/builder.h"

#include <utility>

#include "compiler/builder/builder_state.h"

namespace mscclc {

Builder::Builder(Diagnostics& diagnostics, Origin* origin, Sources* sources)
    : state_(std::make_unique<BuilderState>(diagnostics, origin, sources)) {}
Builder::~Builder() = default;

// ---- header ----------------------------------------------------------------------------------

Program& Builder::program() { return state_->draft().program; }
NameId Builder::intern(std::string_view name) { return program().intern(name); }
bool Builder::collective(const CollectiveSpec& spec) { return state_->collective(spec); }
bool Builder::ensure(Promise promise, Mark mark) {
  return state_->header().ensure(std::move(promise), mark);
}
bool Builder::rows(Mark mark) { return state_->header().rows(mark); }
bool Builder::flags(std::span<const Mark> marks) { return state_->header().flags(marks); }
bool Builder::launch(const Launch& launch, const LaunchMarks& marks) {
  return state_->header().launch(launch, marks);
}
void Builder::set_max_ops(uint64_t max_ops) { state_->budget().set_max_ops(max_ops); }
bool Builder::gave_up() const { return state_->budget().gave_up(); }

// ---- declarations ----------------------------------------------------------------------------

void Builder::rank(uint32_t rank) { state_->enter_rank(rank); }
bool Builder::buffer(NameId name, std::span<const Dim> dims, BufferOptions options, Mark mark,
                     Mark dims_mark) {
  return state_->owned().buffer(name, dims, options, mark, dims_mark);
}
bool Builder::ragged_buffer(NameId name, const Rows& rows, uint32_t dims, BufferOptions options,
                            Mark mark, Mark dims_mark) {
  return state_->owned().ragged_buffer(name, rows, dims, options, mark, dims_mark);
}
bool Builder::channel(ChannelKind kind, NameId name, std::span<const int64_t> keys, int64_t peer,
                      Mark mark, Mark peer_mark) {
  return state_->owned().channel(kind, name, keys, peer, mark, peer_mark);
}
bool Builder::credits(uint32_t count, Mark mark) { return state_->owned().credits(count, mark); }
void Builder::connect(NameId name, std::span<const int64_t> keys, Mark mark) {
  state_->owned().pairing().connect(name, keys, mark);
}
bool Builder::switch_channel(NameId name, std::span<const int64_t> keys, const List& ranks,
                             Mark mark, Mark ranks_mark) {
  return state_->owned().switch_channel(name, keys, ranks, mark, ranks_mark);
}
bool Builder::semaphore(NameId name, std::span<const int64_t> keys, int64_t initial, Mark mark) {
  return state_->owned().semaphore(name, keys, initial, mark);
}
void Builder::poison(NameId name) { state_->owned().names().poison(name); }
void Builder::seal() { state_->seal(); }

// ---- operands --------------------------------------------------------------------------------

void Builder::chunk(NameId buffer, Mark buffer_mark, std::span<const Index> index, Mark mark,
                    Ref& out) {
  state_->parts().refs().chunk(buffer, buffer_mark, index, mark, out);
}
void Builder::channel_end(NameId channel, std::span<const int64_t> keys, Mark mark, Ref& out) {
  seal();
  state_->parts().refs().channel_end(channel, keys, mark, out);
}
void Builder::far_chunk(NameId channel, std::span<const int64_t> keys, Mark channel_mark,
                        NameId buffer, Mark buffer_mark, std::span<const Index> index, Mark mark,
                        Ref& out) {
  seal();
  state_->parts().refs().far_chunk(channel, keys, channel_mark, buffer, buffer_mark, index, mark,
                                   out);
}
void Builder::semaphore_ref(NameId semaphore, std::span<const int64_t> keys, Mark mark, Ref& out) {
  seal();
  state_->parts().refs().semaphore_ref(semaphore, keys, mark, out);
}

void Builder::external_rows(uint32_t external, std::span<const Index> index, Mark mark, Ref& out) {
  state_->parts().refs().external_rows(external, index, mark, out);
}

void Builder::flag(uint32_t array, int64_t index, Mark mark, Ref& out) {
  state_->parts().refs().flag(array, index, mark, out);
}

// ---- by name, for C++ programs ---------------------------------------------------------------

Ref Builder::local(std::string_view buffer, std::initializer_list<Index> index) {
  Ref ref;
  if (state_->draft().ready()) chunk(intern(buffer), {}, {index.begin(), index.size()}, {}, ref);
  return ref;
}

Ref Builder::far(std::string_view channel, std::initializer_list<int64_t> keys,
                 std::string_view buffer, std::initializer_list<Index> index) {
  Ref ref;
  if (!state_->draft().ready()) return ref;
  far_chunk(intern(channel), {keys.begin(), keys.size()}, {}, intern(buffer), {},
            {index.begin(), index.size()}, {}, ref);
  return ref;
}

Ref Builder::end(std::string_view channel, std::initializer_list<int64_t> keys) {
  Ref ref;
  if (state_->draft().ready()) channel_end(intern(channel), {keys.begin(), keys.size()}, {}, ref);
  return ref;
}

Ref Builder::sem(std::string_view semaphore, std::initializer_list<int64_t> keys) {
  Ref ref;
  if (state_->draft().ready())
    semaphore_ref(intern(semaphore), {keys.begin(), keys.size()}, {}, ref);
  return ref;
}

// ---- places of ops ---------------------------------------------------------------------------

bool Builder::block(int64_t block, Mark mark) {
  return state_->parts().places().enter_block(block, mark);
}
bool Builder::group(const List& blocks, Mark mark) {
  return state_->parts().places().enter_group(blocks, mark);
}
void Builder::no_place() { state_->parts().places().no_place(); }
bool Builder::pipeline(int64_t unit, int64_t chunks, Mark unit_mark, Mark chunks_mark) {
  return state_->parts().places().enter_pipeline(unit, chunks, unit_mark, chunks_mark);
}
void Builder::end_pipeline() { state_->parts().places().leave_pipeline(); }
bool Builder::resume_pipeline(uint32_t loop, int64_t unit, int64_t chunks, Mark mark) {
  return state_->parts().places().resume_pipeline(loop, unit, chunks, mark);
}
uint32_t Builder::present_pipeline() const { return state_->parts().places().loop(); }

void Builder::at_site(uint32_t site, Slice values) {
  state_->parts().locations().at_site(site, values);
}
void Builder::at_locations(Slice locations) { state_->parts().locations().at_locations(locations); }
uint32_t Builder::site_id(Site site) {
  return state_->parts().locations().site_id(std::move(site));
}
void Builder::at(std::initializer_list<std::pair<std::string_view, int64_t>> variables,
                 const char* file, uint32_t line) {
  state_->parts().locations().at_call(variables, file, line);
}

// ---- ops -------------------------------------------------------------------------------------

bool Builder::op(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                 const OpOptions& options) {
  seal();
  return state_->parts().ops().add(kind, dsts, srcs, options);
}
bool Builder::op(OpKind kind, std::initializer_list<Ref> dsts, std::initializer_list<Ref> srcs,
                 const OpOptions& options) {
  return op(kind, std::span<const Ref>(dsts.begin(), dsts.size()),
            std::span<const Ref>(srcs.begin(), srcs.size()), options);
}
bool Builder::apply(uint32_t function, std::span<const Ref> results, std::span<const Ref> params,
                    const OpOptions& options) {
  seal();
  return state_->parts().ops().apply(function, results, params, options);
}
bool Builder::op_then(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                      const ThenRows& then, const OpOptions& options) {
  seal();
  return state_->parts().ops().op_then(kind, dsts, srcs, then, options);
}
bool Builder::barrier(const List& blocks, Mark mark) {
  seal();
  return state_->parts().barriers().add(blocks, mark);
}

// ---- the end ---------------------------------------------------------------------------------

bool Builder::check() { return state_->check(); }

std::optional<Program> Builder::finish() {
  if (!check()) return std::nullopt;
  return std::move(program());
}

}  // namespace mscclc
