#include "runtime/core/runner/checked_call.h"

#include "executor/lower.h"

namespace mscclc {
namespace {

Side side_of(uint32_t side) { return side == kInput ? Side::input : Side::output; }

}  // namespace

std::unique_ptr<CallerMemory> CallerMemory::make(Communicator& communicator, const Program& plan,
                                                 const CallerMemoryOptions& options,
                                                 Diagnostics& diagnostics) {
  auto made = std::make_unique<CallerMemory>();
  const Contract& contract = plan.contract;
  const uint64_t part = Chunking::part_for_message(contract, options.max_bytes, 1);
  const Chunking chunking(contract, part, plan.granule(Dtype::f32));
  if (!made->make_externals(communicator, plan, options.max_bytes, diagnostics)) return nullptr;
  made->flags_ = EarlyFlags::make(plan, communicator.device(), diagnostics);
  if (!made->flags_) return nullptr;
  for (const uint32_t side : {kInput, kOutput}) {
    Buffer& buffer = made->sides_[side];
    const uint64_t most = chunking.most_buffer_bytes(side_of(side), communicator.rank());
    buffer.offset = side == kInput ? options.input_offset : options.output_offset;
    buffer.memory =
        communicator.device().allocate(buffer.offset + most, "a caller's buffer", diagnostics);
    if (buffer.memory == nullptr) return nullptr;
    buffer.mirror.resize(most);
    if (!options.registered) continue;
    buffer.registered = communicator.register_buffer(made->device(side), most, diagnostics);
    if (buffer.registered == nullptr) return nullptr;
  }
  return made;
}

/// For calls of any type: the narrowest has the most rows.
bool CallerMemory::make_externals(Communicator& communicator, const Program& plan,
                                  uint64_t max_bytes, Diagnostics& diagnostics) {
  externals_.resize(plan.externals.size());
  if (externals_.empty()) return true;
  for (const Dtype dtype : {Dtype::f32, Dtype::bf16}) {
    const uint64_t part = Chunking::part_for_message(plan.contract, max_bytes, 1);
    const Chunking chunking(plan.contract, part, plan.granule(dtype));
    const auto layouts = rows::lay_out_externals(plan, communicator.rank(), chunking, dtype);
    for (size_t e = 0; e < layouts.size(); ++e) {
      std::vector<uint8_t>& mirror = externals_[e].mirror;
      mirror.resize(
          std::max<uint64_t>({mirror.size(), layouts[e].bytes() + layouts[e].row_bytes, 1}));
    }
  }
  for (Buffer& external : externals_) {
    external.memory =
        communicator.device().allocate(external.mirror.size(), "an external", diagnostics);
    if (external.memory == nullptr) return false;
  }
  return true;
}

CheckedCall::CheckedCall(Communicator& communicator, Executable& executable, CallerMemory& memory,
                         const RunSpec& spec)
    : communicator_(communicator), executable_(executable), memory_(memory), spec_(spec) {
  place();
  const Program& plan = executable.plan();
  const DtypeInfo& type = info(spec.dtype);
  values_ = std::make_unique<TestValues>(spec.dtype, spec.accumulate.value_or(type.accumulate),
                                         plan.contract.reduces() ? spec.op : ReduceOp::call,
                                         plan.contract.ranks);
  const uint64_t part =
      Chunking::part_for_message(plan.contract, spec.bytes, unit_of_part(plan, spec.dtype));
  check_ = std::make_unique<OutputCheck>(plan.contract, part, plan.granule(spec.dtype), *values_,
                                         communicator.rank());
  if (plan.functions.empty() && plan.externals.empty()) return;
  rows_ = std::make_unique<RowCheck>(plan, part, *values_);
  place_externals();
}

void CheckedCall::place_externals() {
  const Program& plan = executable_.plan();
  for (uint32_t e = 0; e < plan.externals.size(); ++e) {
    const rows::External& external = plan.externals[e];
    external_mirrors_.push_back(memory_.mirror_external(e).data());
    const uint32_t columns = rows::values_of(external.kind, external.group, plan.contract.columns);
    const uint64_t row_bytes = rows::bytes_of_row(external, spec_.dtype, plan.contract.columns);
    externals_.push_back({.name = external.name,
                          .type = external.type,
                          .data = memory_.device_external(e),
                          .rows = memory_.mirror_external(e).size() / row_bytes,
                          .columns = columns});
  }
}

bool CheckedCall::copy_externals(bool to_device, Diagnostics& diagnostics) {
  Device& device = communicator_.device();
  for (uint32_t e = 0; e < externals_.size(); ++e) {
    std::vector<uint8_t>& mirror = memory_.mirror_external(e);
    void* const there = externals_[e].data;
    if (!(to_device ? device.write(there, mirror.data(), mirror.size(), diagnostics)
                    : device.read(mirror.data(), there, mirror.size(), diagnostics))) {
      return false;
    }
  }
  return true;
}

/// Lays the call's buffers out in the caller's memory.
void CheckedCall::place() {
  const Contract& contract = executable_.plan().contract;
  const Program& plan = executable_.plan();
  const uint64_t part =
      Chunking::part_for_message(contract, spec_.bytes, unit_of_part(plan, spec_.dtype));
  const Chunking chunking(contract, part, plan.granule(spec_.dtype));
  message_bytes_ = chunking.message_bytes();
  in_place_ = spec_.in_place.value_or(contract.in_place == InPlace::yes);
  const CallerBuffers callers = caller_buffers(contract, chunking, communicator_.rank(), in_place_);
  shared_ = callers.shared;
  outer_ = callers.outer;
  for (const uint32_t side : {kInput, kOutput}) {
    const bool inside = shared_ && side != outer_;
    const uint32_t in = shared_ ? outer_ : side;
    const uint64_t offset = inside ? callers.inner_offset : 0;
    mirror_[side] = memory_.mirror(in) + offset;
    device_[side] = memory_.device(in) + offset;
    bytes_[side] = chunking.buffer_bytes(side_of(side), communicator_.rank());
  }
}

bool CheckedCall::bind(Diagnostics& diagnostics) {
  binding_ = executable_.bind(
      {.bytes = message_bytes_,
       .dtype = spec_.dtype,
       .op = spec_.op,
       .accumulate = spec_.accumulate,
       .input = device_[kInput],
       .output = device_[kOutput],
       .externals = externals_,
       .flags = memory_.flags().of_call(),
       .launch_order = has_flags() ? LaunchOrder::plan_first : LaunchOrder::other_first},
      diagnostics);
  return static_cast<bool>(binding_);
}

bool CheckedCall::fill(uint64_t number, Diagnostics& diagnostics) {
  check_->fill(communicator_.rank(), number, mirror_[kInput], mirror_[kOutput]);
  for (const uint32_t side : {kInput, kOutput}) {
    if (shared_ && side != outer_) continue;
    if (!communicator_.device().write(device_[side], mirror_[side], bytes_[side], diagnostics)) {
      return false;
    }
  }
  if (!rows_) return true;
  rows_->fill(communicator_.rank(), number, external_mirrors_);
  return copy_externals(true, diagnostics);
}

bool CheckedCall::launch(StreamHandle stream, Diagnostics& diagnostics) {
  if (!memory_.flags().raise(diagnostics)) return false;
  return executable_.launch(binding_, stream, diagnostics);
}

bool CheckedCall::compare(uint64_t number, Diagnostics& diagnostics) {
  if (!memory_.flags().compare(diagnostics)) return false;
  if (!read_output(mirror_[kOutput], diagnostics)) return false;
  if (!rows_) {
    check_->compare(communicator_.rank(), number, mirror_[kOutput]);
    return true;
  }
  if (!copy_externals(false, diagnostics)) return false;
  rows_->compare(communicator_.rank(), number, mirror_[kOutput], external_mirrors_);
  return true;
}

// The other side has come and gone, so the plan has all room.
bool CheckedCall::has_flags() const { return !executable_.plan().flags.empty(); }

bool CheckedCall::write_input(const uint8_t* from, Diagnostics& diagnostics) {
  return communicator_.device().write(device_[kInput], from, bytes_[kInput], diagnostics);
}

bool CheckedCall::read_output(uint8_t* to, Diagnostics& diagnostics) {
  return communicator_.device().read(to, device_[kOutput], bytes_[kOutput], diagnostics);
}

}  // namespace mscclc
