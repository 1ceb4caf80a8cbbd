#include "tools/draw/payload.h"

#include <algorithm>

#include "ir/diagnostics/printable.h"
#include "ir/print/row_names.h"
#include "ir/program/access.h"
#include "tools/draw/words.h"

namespace mscclc::draw {
namespace {

void add(Cargo& cargo, const std::string& chunk, int64_t main) {
  cargo.chunk = cargo.chunks.empty() || cargo.chunk == main ? main : -1;
  if (std::ranges::count(cargo.chunks, chunk) == 0) cargo.chunks.push_back(chunk);
}

std::string chunk_text(const Program& program, const Access& a) {
  const Buffer& buffer = program.ranks[a.rank].buffers[a.buffer];
  return printable_line(run_text(program, buffer, a.first, a.count));
}

}  // namespace

void Payload::add_block(uint32_t rank, const std::vector<uint32_t>& ops) {
  std::map<uint32_t, LooseCargo> pending;  // by peer
  std::map<uint32_t, OpRef> waited;
  for (const uint32_t i : ops) {
    const Op& op = program_.ranks[rank].ops[i];
    const OpInfo& row = info(op.kind);
    if (row.moves_data()) move({rank, i}, op, pending, waited);
    for (const Operand& o : program_.dsts(op)) {
      if (!row.has(kSignals) && !row.has(kWaits)) break;
      const uint32_t peer = program_.ranks[rank].channels[o.channel].peer;
      if (row.has(kWaits)) waited[peer] = {rank, i};
      if (!row.has(kSignals)) continue;
      if (const auto at = pending.find(peer); at != pending.end()) {
        written_[{{rank, i}, peer}] = std::move(at->second.cargo);
        pending.erase(at);
      }
    }
  }
  for (auto& [peer, cargo] : pending) loose_.push_back(std::move(cargo));
}

void Payload::move(OpRef at, const Op& op, std::map<uint32_t, LooseCargo>& pending,
                   const std::map<uint32_t, OpRef>& waited) {
  std::vector<Access> accesses;
  append_accesses(program_, at.rank, op, accesses);
  const int64_t main = main_chunk(program_, op);
  for (const Access& a : accesses) {
    if (a.rank == at.rank || a.packets) continue;
    const std::string chunk = chunk_text(program_, a);
    if (a.write) {
      LooseCargo& cargo = pending[a.rank];
      cargo = {at, a.rank, true, std::move(cargo.cargo)};
      add(cargo.cargo, chunk, main);
    } else if (const auto wait = waited.find(a.rank); wait != waited.end()) {
      add(read_[{wait->second, a.rank}], chunk, main);
    } else {
      LooseCargo cargo{at, a.rank, false, {}};
      add(cargo.cargo, chunk, main);
      loose_.push_back(std::move(cargo));
    }
  }
}

void Payload::attach_loose(const std::vector<Flow>& flows, const Steps& steps) {
  std::map<std::pair<uint32_t, uint32_t>, std::vector<const Flow*>> between;  // ranks
  for (const Flow& flow : flows) {
    if (flow.kind == FlowKind::signal && flow.rounds == 0) {
      between[{flow.from.rank, flow.to.rank}].push_back(&flow);
    }
  }
  const auto level = [&](OpRef op) { return steps.steps[steps.at(op)].level; };
  std::vector<LooseCargo> left;
  for (LooseCargo& loose : loose_) {
    const uint32_t own = level(loose.op);
    const Flow* best = nullptr;
    const auto key =
        loose.written ? std::pair(loose.op.rank, loose.peer) : std::pair(loose.peer, loose.op.rank);
    for (const Flow* flow : between[key]) {
      if (loose.written && level(flow->from) > own &&
          (best == nullptr || level(flow->from) < level(best->from))) {
        best = flow;
      }
      if (!loose.written && level(flow->to) < own &&
          (best == nullptr || level(flow->to) > level(best->to))) {
        best = flow;
      }
    }
    if (best == nullptr) {
      left.push_back(std::move(loose));
      continue;
    }
    Cargo& cargo =
        loose.written ? written_[{best->from, loose.peer}] : read_[{best->to, loose.peer}];
    for (const std::string& chunk : loose.cargo.chunks) add(cargo, chunk, loose.cargo.chunk);
  }
  loose_ = std::move(left);
}

Cargo Payload::of(const Flow& flow) const {
  if (flow.kind == FlowKind::packets) return packets(flow);
  if (flow.kind != FlowKind::signal) return {};
  Cargo cargo;
  if (const auto at = written_.find({flow.from, flow.to.rank}); at != written_.end()) {
    cargo = at->second;
  }
  if (const auto at = read_.find({flow.to, flow.from.rank}); at != read_.end()) {
    for (const std::string& chunk : at->second.chunks) add(cargo, chunk, at->second.chunk);
  }
  return cargo;
}

Cargo Payload::packets(const Flow& flow) const {
  const Op& op = program_.ranks[flow.from.rank].ops[flow.from.op];
  std::vector<Access> accesses;
  append_accesses(program_, flow.from.rank, op, accesses);
  Cargo cargo;
  for (const Access& a : accesses) {
    if (!a.write || !a.packets || a.rank != flow.to.rank) continue;
    add(cargo, chunk_text(program_, a), main_chunk(program_, op));
  }
  return cargo;
}

}  // namespace mscclc::draw
