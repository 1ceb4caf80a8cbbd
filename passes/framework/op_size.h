// Does an op keep the limits of the target? What `fit` cuts and `fuse` does not exceed.
#pragma once

#include <cstddef>

#include "ir/ops/op_limits.h"
#include "ir/program/program.h"

namespace mscclc {

/// The most operands that an op of this kind may have on a side.
size_t most_operands(const OpLimits& limits, OpKind kind, ChannelKind channel);
/// True if the target has no ops of this kind.
bool lacks(const OpLimits& limits, OpKind kind);
/// True if the target wants all sources of such an op in buffers of one kind.
bool wants_one_source_kind(const OpLimits& limits, OpKind kind, ChannelKind channel);
/// The kind of buffer that a local chunk of `rank` lies in.
BufferKind buffer_kind(const Program& program, uint32_t rank, const Operand& local);

}  // namespace mscclc
