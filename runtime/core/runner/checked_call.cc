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
  const Chunking chunking(contract, part, plan.launch.align);
  for (const uint32_t side : {kInput, kOutput}) {
    Buffer& buffer = made->sides_[side];
    const uint64_t most = chunking.buffer_bytes(side_of(side), communicator.rank());
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

CheckedCall::CheckedCall(Communicator& communicator, Executable& executable, CallerMemory& memory,
                         const RunSpec& spec)
    : communicator_(communicator), executable_(executable), memory_(memory), spec_(spec) {
  place();
  const Program& plan = executable.plan();
  const DtypeInfo& type = info(spec.dtype);
  values_ = std::make_unique<TestValues>(spec.dtype, spec.accumulate.value_or(type.accumulate),
                                         plan.contract.reduces() ? spec.op : ReduceOp::call,
                                         plan.contract.ranks);
  check_ = std::make_unique<OutputCheck>(
      plan.contract, Chunking::part_for_message(plan.contract, spec.bytes, type.bytes),
      plan.launch.align, *values_, communicator.rank());
}

/// Lays the call's buffers out in the caller's memory.
void CheckedCall::place() {
  const Contract& contract = executable_.plan().contract;
  const uint32_t element = info(spec_.dtype).bytes;
  const uint64_t part = Chunking::part_for_message(contract, spec_.bytes, element);
  const Chunking chunking(contract, part, executable_.plan().launch.align);
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
  binding_ = executable_.bind({.bytes = message_bytes_,
                               .dtype = spec_.dtype,
                               .op = spec_.op,
                               .accumulate = spec_.accumulate,
                               .input = device_[kInput],
                               .output = device_[kOutput]},
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
  return true;
}

bool CheckedCall::launch(StreamHandle stream, Diagnostics& diagnostics) {
  return executable_.launch(binding_, stream, diagnostics);
}

bool CheckedCall::compare(uint64_t number, Diagnostics& diagnostics) {
  if (!read_output(mirror_[kOutput], diagnostics)) return false;
  check_->compare(communicator_.rank(), number, mirror_[kOutput]);
  return true;
}

bool CheckedCall::write_input(const uint8_t* from, Diagnostics& diagnostics) {
  return communicator_.device().write(device_[kInput], from, bytes_[kInput], diagnostics);
}

bool CheckedCall::read_output(uint8_t* to, Diagnostics& diagnostics) {
  return communicator_.device().read(to, device_[kOutput], bytes_[kOutput], diagnostics);
}

}  // namespace mscclc
