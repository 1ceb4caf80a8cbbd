#include "python/mscclc/torch/adapter/calls.h"

#include <algorithm>

#include "python/mscclc/torch/adapter/types.h"

namespace mscclc::torch_adapter {
namespace {

/// The tensor as its values lie in contiguous memory; a copy where they do not.
at::Tensor plain(const at::Tensor& tensor) {
  return tensor.resolve_conj().resolve_neg().contiguous();
}

/// A tensor to be written as contiguous memory: itself, or a copy that goes back.
class Written {
 public:
  explicit Written(const at::Tensor& tensor) : tensor_(tensor), data_(plain(tensor)) {}
  const at::Tensor& data() const { return data_; }
  void put_back() const {
    if (!data_.is_same(tensor_)) tensor_.copy_(data_);
  }

 private:
  const at::Tensor& tensor_;
  const at::Tensor data_;
};

mscclc_call_t call_of(mscclc_kind_t kind, const void* input, void* output) {
  mscclc_call_t call = MSCCLC_CALL_INIT;
  call.kind = kind;
  call.input = input;
  call.output = output;
  return call;
}

/// A collective that only moves `part`s, of which a rank has one.
mscclc_call_t moving(mscclc_kind_t kind, const at::Tensor& part, const void* input, void* output) {
  mscclc_call_t call = call_of(kind, input, output);
  const Moved moved = moved_as(part);
  call.dtype = moved.dtype;
  call.count = static_cast<uint64_t>(part.numel()) * moved.times;
  return call;
}

mscclc_call_t reducing(mscclc_kind_t kind, const at::Tensor& part, const c10d::ReduceOp& op,
                       const void* input, void* output) {
  mscclc_call_t call = call_of(kind, input, output);
  const Reduction reduction = reduction_of(part.scalar_type(), op);
  call.dtype = reduction.dtype;
  call.op = reduction.op;
  call.count = static_cast<uint64_t>(part.numel()) * reduction.times;
  return call;
}

/// The input of a reduction: of PREMUL_SUM its product with the factor.
at::Tensor summand(const at::Tensor& input, const c10d::ReduceOp& op) {
  if (op != c10d::ReduceOp::PREMUL_SUM) return plain(input);
  const auto* factor = dynamic_cast<c10d::NCCLPreMulSumSupplement*>(op.supplement_.get());
  TORCH_CHECK(factor != nullptr, "PREMUL_SUM has no factor");
  TORCH_CHECK(input.is_floating_point() || input.is_complex(),
              "PREMUL_SUM is for floating-point and complex numbers, not ", input.scalar_type());
  if (!factor->tensor_factor.defined()) return plain(input).mul(factor->double_factor);
  return plain(input).mul(factor->tensor_factor.to(input.options()));
}

at::Tensor rows_like(const at::Tensor& part, int64_t rows) {
  return at::empty({rows, part.numel()}, part.options());
}

/// Every rank gets all inputs, as rows.
at::Tensor gathered(const Runner& run, const at::Tensor& input) {
  const at::Tensor source = plain(input), rows = rows_like(source, run.comm.ranks());
  run(moving(MSCCLC_ALLGATHER, source, source.data_ptr(), rows.data_ptr()));
  return rows;
}

/// Reduces rows in the order of the ranks.
at::Tensor fold(const at::Tensor& rows, const c10d::ReduceOp& op) {
  at::Tensor result = rows[0];
  for (int64_t i = 1; i < rows.size(0); ++i) reduce_bitwise(result, rows[i], op);
  return result;
}

void check_bitwise(const at::Tensor& tensor, const c10d::ReduceOp& op) {
  TORCH_CHECK(at::isIntegralType(tensor.scalar_type(), /*includeBool=*/true), name_of(op),
              " is for integers and bool, not ", tensor.scalar_type());
}

bool all_as_large(const Tensors& tensors, const at::Tensor& as) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const at::Tensor& t) { return t.numel() == as.numel(); });
}

at::Tensor packed(const Tensors& tensors) {
  Tensors flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(plain(tensor).view({-1}));
  return at::cat(flat);
}

void unpack(const at::Tensor& flat, const Tensors& into) {
  int64_t at = 0;
  for (const at::Tensor& tensor : into) {
    tensor.copy_(flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
}

int64_t total(const Tensors& tensors) {
  int64_t sum = 0;
  for (const at::Tensor& tensor : tensors) sum += tensor.numel();
  return sum;
}

}  // namespace

void all_reduce(const Runner& run, const at::Tensor& tensor, const c10d::ReduceOp& op) {
  if (is_bitwise(op)) {
    check_bitwise(tensor, op);
    tensor.copy_(fold(gathered(run, tensor), op).view(tensor.sizes()));
    return;
  }
  const Written output(tensor);
  const at::Tensor source = op == c10d::ReduceOp::PREMUL_SUM ? summand(tensor, op) : output.data();
  run(reducing(MSCCLC_ALLREDUCE, tensor, op, source.data_ptr(), output.data().data_ptr()));
  output.put_back();
}

void reduce(const Runner& run, const at::Tensor& tensor, int root, const c10d::ReduceOp& op) {
  const bool here = run.comm.rank() == root;
  if (is_bitwise(op)) {
    check_bitwise(tensor, op);
    const at::Tensor rows = gathered(run, tensor);
    if (here) tensor.copy_(fold(rows, op).view(tensor.sizes()));
    return;
  }
  const Written output(tensor);
  const at::Tensor source = op == c10d::ReduceOp::PREMUL_SUM ? summand(tensor, op) : output.data();
  mscclc_call_t call = reducing(MSCCLC_REDUCE, tensor, op, source.data_ptr(),
                                here ? output.data().data_ptr() : nullptr);
  call.root = static_cast<uint32_t>(root);
  run(call);
  if (here) output.put_back();
}

void broadcast(const Runner& run, const at::Tensor& tensor, int root) {
  const Written data(tensor);
  mscclc_call_t call =
      moving(MSCCLC_BROADCAST, tensor, data.data().data_ptr(), data.data().data_ptr());
  call.root = static_cast<uint32_t>(root);
  run(call);
  if (run.comm.rank() != root) data.put_back();
}

bool broadcast_waits(const Runner& run, const at::Tensor& tensor, int root) {
  // Where the buffers lie does not matter.
  mscclc_call_t call = moving(MSCCLC_BROADCAST, tensor, nullptr, nullptr);
  call.root = static_cast<uint32_t>(root);
  return run.comm.waits(call, run.stream);
}

void all_gather(const Runner& run, const at::Tensor& output, const at::Tensor& input) {
  const Written target(output);
  const at::Tensor source = plain(input);
  run(moving(MSCCLC_ALLGATHER, source, source.data_ptr(), target.data().data_ptr()));
  target.put_back();
}

at::Tensor rows_for(const Tensors& outputs) {
  if (!all_as_large(outputs, outputs[0])) return {};
  std::vector<int64_t> sizes = outputs[0].sizes().vec();
  sizes.insert(sizes.begin(), static_cast<int64_t>(outputs.size()));
  return at::empty(sizes, outputs[0].options());
}

void all_gather_list(const Runner& run, const Tensors& outputs, const at::Tensor& input,
                     const at::Tensor& rows) {
  if (rows.defined()) {
    const at::Tensor source = plain(input);
    run(moving(MSCCLC_ALLGATHER, source, source.data_ptr(), rows.data_ptr()));
    return unpack(rows.view({-1}), outputs);
  }
  const at::Tensor own = plain(input).clone();  // it may lie in an output
  for (int root = 0; root < run.comm.ranks(); ++root) {
    const at::Tensor& output = outputs[static_cast<size_t>(root)];
    if (run.comm.rank() == root) output.copy_(own.view(output.sizes()));
    broadcast(run, output, root);
  }
}

void reduce_scatter(const Runner& run, const at::Tensor& output, const at::Tensor& input,
                    const c10d::ReduceOp& op) {
  if (is_bitwise(op)) {
    check_bitwise(input, op);
    const at::Tensor parts = fold(gathered(run, input), op).view({run.comm.ranks(), -1});
    output.copy_(parts[run.comm.rank()].view(output.sizes()));
    return;
  }
  const Written target(output);
  const at::Tensor source = summand(input, op);
  run(reducing(MSCCLC_REDUCESCATTER, output, op, source.data_ptr(), target.data().data_ptr()));
  target.put_back();
}

void reduce_scatter_list(const Runner& run, const at::Tensor& output, const Tensors& inputs,
                         const c10d::ReduceOp& op) {
  if (all_as_large(inputs, inputs[0])) return reduce_scatter(run, output, packed(inputs), op);
  for (int root = 0; root < run.comm.ranks(); ++root) {
    // A part that another rank reduces is not to be changed: only at the root is it the output.
    const at::Tensor part = plain(inputs[static_cast<size_t>(root)]).clone();
    reduce(run, part, root, op);
    if (run.comm.rank() == root) output.copy_(part.view(output.sizes()));
  }
}

void gather(const Runner& run, const Tensors& outputs, const at::Tensor& input, int root) {
  const bool here = run.comm.rank() == root;
  const at::Tensor source = plain(input);
  const at::Tensor rows = here ? rows_like(source, run.comm.ranks()) : at::Tensor();
  mscclc_call_t call =
      moving(MSCCLC_GATHER, source, source.data_ptr(), here ? rows.data_ptr() : nullptr);
  call.root = static_cast<uint32_t>(root);
  run(call);
  if (here) unpack(rows.view({-1}), outputs);
}

void scatter(const Runner& run, const at::Tensor& output, const Tensors& inputs, int root) {
  const bool here = run.comm.rank() == root;
  const Written target(output);
  const at::Tensor rows = here ? packed(inputs) : at::Tensor();
  mscclc_call_t call =
      moving(MSCCLC_SCATTER, output, here ? rows.data_ptr() : nullptr, target.data().data_ptr());
  call.root = static_cast<uint32_t>(root);
  run(call);
  target.put_back();
}

void all_to_all(const Runner& run, const at::Tensor& output, const at::Tensor& input) {
  const Written target(output);
  const at::Tensor source = plain(input);
  mscclc_call_t call = moving(MSCCLC_ALLTOALL, source, source.data_ptr(), target.data().data_ptr());
  call.count /= static_cast<uint64_t>(run.comm.ranks());
  run(call);
  target.put_back();
}

Counts exchange_counts(const Runner& host, const std::vector<int64_t>& sent,
                       const std::vector<int64_t>& expected) {
  const int64_t ranks = host.comm.ranks();
  at::Tensor own = at::empty({2, ranks}, at::kLong);
  std::copy(sent.begin(), sent.end(), own.data_ptr<int64_t>());
  std::copy(expected.begin(), expected.end(), own.data_ptr<int64_t>() + ranks);
  const at::Tensor all = gathered(host, own);  // rank: what it sends, what it expects
  const int64_t* found = all.const_data_ptr<int64_t>();
  Counts counts;
  for (int64_t s = 0; s < ranks; ++s) {
    for (int64_t d = 0; d < ranks; ++d) {
      const int64_t sends = found[s * 2 * ranks + d], expects = found[(d * 2 + 1) * ranks + s];
      TORCH_CHECK(sends == expects, "rank ", s, " sends ", sends, " elements to rank ", d,
                  ", which expects ", expects);
      counts.push_back(static_cast<uint64_t>(sends));
    }
  }
  return counts;
}

void all_to_all_uneven(const Runner& run, const at::Tensor& output, const at::Tensor& input,
                       const Counts& counts) {
  const Written target(output);
  const at::Tensor source = plain(input);
  mscclc_call_t call =
      moving(MSCCLC_ALLTOALLV, source, source.data_ptr(), target.data().data_ptr());
  Counts moved = counts;
  for (uint64_t& count : moved) count *= moved_as(source).times;
  call.counts = moved.data();
  run(call);
  target.put_back();
}

void all_to_all_list(const Runner& run, const Tensors& outputs, const Tensors& inputs,
                     const Counts& counts) {
  const at::Tensor source = packed(inputs);
  const at::Tensor target = at::empty({total(outputs)}, source.options());
  all_to_all_uneven(run, target, source, counts);
  unpack(target, outputs);
}

void barrier(const Runner& run) { run(call_of(MSCCLC_BARRIER, nullptr, nullptr)); }

}  // namespace mscclc::torch_adapter
