#include "passes/prove/memory/races.h"

namespace mscclc::proof {

/// The first few of those between two places of the program are enough; nullptr.
Finding* Races::add(Finding::Kind kind, const ChunkName& name, const Event& first,
                    const Event& second) {
  const auto number = [&](const Event& e) {
    return uint64_t{system_.processes()[e.process].rank} * 0x9e3779b97f4a7c15u + e.op;
  };
  if (!findings_.may_report(number(first) * 0xbf58476d1ce4e5b9u + number(second))) return nullptr;
  Finding& finding = findings_.add(kind);
  finding.first = first;
  finding.second = second;
  finding.chunk = name;
  return &finding;
}

void Races::report(const ChunkName& name, const Record& old, const Record& access) {
  if (are_known()) return;
  suspect(name, old, access);
  Finding* const finding = add(Finding::Kind::race, name, old.event, access.event);
  if (finding == nullptr) return;
  finding->first_writes = old.write;
  finding->second_writes = access.write;
  finding->first_pair = old.position.pair;
  finding->second_pair = access.position.pair;
  finding->first_round = old.round;
  finding->second_round = access.round;
  finding->too_early = reads_too_early(name, old, access);
}

void Races::report_slot_twice(const ChunkName& name, const Record& old, const Record& access) {
  if (are_known()) return;
  suspect(name, old, access);
  add(Finding::Kind::slot_twice, name, old.event, access.event);
}

void Races::report_overtaken(const ChunkName& name, const Event& reader, const Record& later) {
  if (are_known()) return;
  suspect(name, {.event = reader}, later);
  Finding* const finding = add(Finding::Kind::race, name, reader, later.event);
  if (finding != nullptr) finding->second_writes = true;
}

void Races::report_overlaid(const ChunkName& name, const Event& old, const Event& event) {
  Finding* const finding = add(Finding::Kind::race, name, old, event);
  if (finding != nullptr) finding->overlaid = true;
}

/// Is it a load of what has not been written in this call, and a store that comes later in it? Then
/// the load is meant to come later.
bool Races::reads_too_early(const ChunkName& name, const Record& old, const Record& access) const {
  if (old.write || !access.write || old.event.op == kNone || access.event.op == kNone) return false;
  const uint32_t call = access.event.call;
  if (old.event.call != call) return false;
  const Spot spot = system_.spot(name.rank, name.buffer, name.chunk, call);
  const uint32_t owner = name.rank % system_.ranks();
  const uint32_t input = calls_.part(owner, call).input + kInput;
  for (uint32_t c = 0; c < system_.program().ranks[owner].buffers[input].chunks; ++c) {
    if (system_.chunk(owner, input, c, call) == spot.chunk) return false;  // the caller's value
  }
  for (uint32_t i = history_.stores(spot.chunk); i != kNone; i = history_.record(i).next) {
    const Record& store = history_.record(i);
    const bool of_op = store.event.op != kNone && store.event.call == call;
    if (of_op && store.extent.may_touch(old.extent)) return false;
  }
  return true;
}

/// Notes what these two make uncertain, unless this run has done them in the order that is meant.
void Races::suspect(const ChunkName& name, const Record& old, const Record& access) {
  const uint64_t before = meant_position(old.event), after = meant_position(access.event);
  const bool fills = old.write && !access.write && name.buffer != kInput;  // then it is read
  if (before < after || (before == after && fills)) return;
  for (const Record* r : {&old, &access}) {
    const uint32_t rank = system_.processes()[r->event.process].rank;
    if (r->event.op == kNone) {
      suspects_.callers.insert(
          system_.spot(name.rank, name.buffer, name.chunk, r->event.call).chunk);
    } else if (!r->write) {
      suspects_.loads.insert(Suspects::key(rank, r->event.op));
    } else if (old.write && access.write) {
      suspects_.stores.insert(Suspects::key(rank, r->event.op));
    }
  }
}

/// Calls come one after the other: the caller hands over its buffers, ops, the caller takes them.
uint64_t Races::meant_position(const Event& event) {
  const bool caller = event.op == kNone, leaving = caller && event.time == event.call + 2;
  return uint64_t{event.call} * 3 + (!caller ? 1 : leaving ? 2 : 0);
}

}  // namespace mscclc::proof
