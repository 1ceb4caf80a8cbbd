#include "runtime/devices/cuda/memory/switch_team.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/devices/cuda/driver/stream.h"
#include "runtime/devices/cuda/memory/multicast.h"
#include "runtime/devices/cuda/memory/shareable.h"
#include "runtime/support/bytes.h"

namespace mscclc::cuda {
namespace {

/// A region of this rank: whole granules of an allocation, [begin, begin + span) there; the region
/// begins `phase` bytes into them.
struct OwnRegion {
  HandleReference memory;
  uint64_t begin = 0, span = 0, phase = 0;
};

/// A region's place in the object, the same for all members. span 0: it has none.
struct RegionInObject {
  uint64_t offset = 0, span = 0, phase = 0;
};

class MulticastTeam final : public SwitchTeam {
 public:
  MulticastTeam(std::unique_ptr<MulticastObject> object, std::vector<RegionInObject> places)
      : object_(std::move(object)), places_(std::move(places)) {}
  uint8_t* address(size_t region) const override {
    const RegionInObject& place = places_[region];
    return place.span == 0 ? nullptr : pointer_to(object_->address() + place.offset + place.phase);
  }

 private:
  std::unique_ptr<MulticastObject> object_;
  std::vector<RegionInObject> places_;
};

class Join {
 public:
  Join(const JoinRequest& request, Diagnostics& diagnostics)
      : request_(request), context_(request.context), diagnostics_(diagnostics) {
    const auto& members = request.members;
    const auto own = std::find(members.begin(), members.end(), request.bootstrap.rank());
    is_member_ = own != members.end();
    is_first_ = own == members.begin() && is_member_;
  }

  bool run(std::unique_ptr<SwitchTeam>& team);

 private:
  using Messages = std::vector<std::vector<uint8_t>>;

  bool look();
  bool look_at(const SwitchRegion& region, OwnRegion& own);
  bool find_places(const Messages& messages);
  bool find_place(const std::vector<ByteReader>& readers, size_t region);
  bool create();
  bool import(const std::vector<uint8_t>& message);
  bool bind_and_map();
  bool step(const char* what, bool able, std::vector<uint8_t> message, Messages& all);
  bool warn(uint32_t rank, std::string_view why);

  const JoinRequest& request_;
  const SharedContext& context_;
  Diagnostics& diagnostics_;
  bool is_member_, is_first_;
  Diagnostics why_;    ///< why this rank cannot go on
  bool talks_ = true;  ///< the bootstrap works
  uint64_t granule_ = 0;
  uint64_t object_bytes_ = 0;
  std::vector<OwnRegion> own_;
  std::vector<RegionInObject> places_;
  KeptOffers kept_;
  MemoryHandle handle_;
  std::unique_ptr<MulticastObject> object_;
};

// A message begins with whether the rank could do its part, then what others need of it, or why
// not. False: some rank could not, or (talks_) the bootstrap failed.
bool Join::step(const char* what, bool able, std::vector<uint8_t> message, Messages& all) {
  std::vector<uint8_t> own = {static_cast<uint8_t>(able ? 1 : 0)};
  if (able) {
    ByteWriter(own).bytes(message);
  } else {
    ByteWriter(own).text(why_.all().empty() ? "it does not say why" : why_.all().back().message);
  }
  if (!request_.bootstrap.all_gather(own, what, all, diagnostics_)) {
    talks_ = false;
    return false;
  }
  for (uint32_t r = 0; r < all.size(); ++r) {
    ByteReader reader(all[r]);
    const auto could = reader.number<uint8_t>();
    const std::span<const uint8_t> rest = reader.rest();
    if (!reader.good() || could != 1) {
      return warn(r, {reinterpret_cast<const char*>(rest.data()), rest.size()});
    }
    all[r].assign(rest.begin(), rest.end());
  }
  return true;
}

bool Join::warn(uint32_t rank, std::string_view why) {
  if (!is_member_ || !request_.wanted) return false;
  diagnostics_
      .warning("multicast-unavailable", {},
               fmt::format("ranks {} do not use multicast: rank {} cannot",
                           fmt::join(request_.members, ", "), rank))
      .notes.push_back({std::string(why)});
  return false;
}

bool Join::look_at(const SwitchRegion& region, OwnRegion& own) {
  if (region.address == nullptr) return true;  // this rank has none
  const Driver& driver = context_->driver();
  const abi::Address at = address_of(region.address);
  abi::Address base = 0;
  size_t bytes = 0;
  if (!HandleReference::retain(context_, at, own.memory, why_)) return false;
  if (!own.memory) return true;  // of another allocator: no place
  int types = 0;
  if (!own.memory.handle_types(types, why_)) return false;
  if (types == abi::kNoHandle) return true;  // only shareable memory can be bound
  if (!context_->ok(driver.PointerGetAttribute(&base, abi::kMappingBaseAddress, at),
                    "find a mapping", why_) ||
      !context_->ok(driver.PointerGetAttribute(&bytes, abi::kMappingSize, at), "find a mapping",
                    why_)) {
    return false;
  }
  const uint64_t offset = at - base;
  own.phase = offset % granule_;
  own.begin = offset - own.phase;
  own.span = whole_granules(own.phase + region.bytes, granule_);
  if (own.span > bytes - own.begin) own.span = 0;  // its last granule is not whole
  return true;
}

bool Join::look() {
  if (!is_member_) return true;
  if (!request_.wanted) {
    why_.error("cuda", {}, "multicast is off (MSCCLC_MULTICAST=1 asks for it), or not there");
    return false;
  }
  granule_ = multicast_granule(*context_, static_cast<uint32_t>(request_.members.size()), why_);
  if (granule_ == 0) return false;
  own_.resize(request_.regions.size());
  for (size_t i = 0; i < own_.size(); ++i) {
    if (!look_at(request_.regions[i], own_[i])) return false;
  }
  return true;
}

bool Join::find_place(const std::vector<ByteReader>& readers, size_t region) {
  RegionInObject& place = places_[region];
  for (size_t m = 0; m < readers.size(); ++m) {
    ByteReader reader = readers[m];
    reader.bytes(region * 16);
    const auto span = reader.number<uint64_t>(), phase = reader.number<uint64_t>();
    if (!reader.good()) return warn(request_.members[m], "it joins fewer regions");
    if (m == 0) place = {object_bytes_, span, phase};
    const bool fits = span > 0 && place.span > 0 && phase == place.phase;
    place.span = fits ? std::max(place.span, span) : 0;
  }
  if (place.span > (uint64_t{1} << 48)) return warn(request_.members[0], "regions are too large");
  object_bytes_ += place.span;
  return true;
}

// By all ranks alike, members or not: which ranks go on is the same everywhere.
bool Join::find_places(const Messages& messages) {
  std::vector<ByteReader> readers;
  uint64_t granule = 0, regions = 0;
  for (const uint32_t member : request_.members) {
    ByteReader& reader = readers.emplace_back(messages[member]);
    const auto its_granule = reader.number<uint64_t>(), its_regions = reader.number<uint64_t>();
    if (readers.size() == 1) granule = its_granule, regions = its_regions;
    if (!reader.good() || its_granule != granule || its_regions != regions ||
        regions > reader.rest().size()) {
      return warn(member, "its granules or regions differ");
    }
  }
  places_.resize(regions);
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!find_place(readers, i)) return false;
  }
  return object_bytes_ > 0 || warn(request_.members[0], "no region can be joined");
}

bool Join::create() {
  if (!is_first_) return true;
  int handle_types = 0;
  object_ = MulticastObject::create(context_, static_cast<uint32_t>(request_.members.size()),
                                    object_bytes_, handle_types, why_);
  if (object_ == nullptr) return false;
  handle_.bytes = handle_.allocation = object_bytes_;
  kept_.offer(object_->reference(), handle_types, context_, request_.exchange, handle_, why_);
  return !handle_.offers.empty();
}

bool Join::import(const std::vector<uint8_t>& message) {
  if (!is_member_) return true;
  std::span<const uint8_t> rest = message;
  const std::optional<MemoryHandle> handle = decode_handle(rest, why_);
  if (!handle) return false;
  if (handle->allocation != object_bytes_) {
    why_.error("bad-handle", {}, "the multicast object has another size");
    return false;
  }
  for (const Offer& offer : handle->offers) {
    if (object_ != nullptr) break;
    if (offer.kind != HandleKind::cuda_fd && offer.kind != HandleKind::cuda_fabric) continue;
    HandleReference reference = import_reference(context_, request_.exchange, *handle, offer, why_);
    if (!reference) continue;
    object_ = std::make_unique<MulticastObject>(context_, std::move(reference), object_bytes_);
  }
  return object_ != nullptr && object_->add_device(why_);
}

bool Join::bind_and_map() {
  if (!is_member_) return true;
  for (size_t i = 0; i < own_.size(); ++i) {
    if (places_[i].span > 0 &&
        !object_->bind(own_[i].memory, own_[i].begin, own_[i].span, places_[i].offset, why_)) {
      return false;
    }
  }
  return object_->map(granule_, why_);
}

bool Join::run(std::unique_ptr<SwitchTeam>& team) {
  const CurrentContext current(*context_);
  const OutsideCapture outside(context_->driver());
  Messages all;
  std::vector<uint8_t> regions;
  const bool able = current.is_set(why_) && look();
  ByteWriter writer(regions);
  writer.number(granule_).number(static_cast<uint64_t>(own_.size()));
  for (const OwnRegion& own : own_) writer.number(own.span).number(own.phase);
  if (!step("join a switch: look", able, std::move(regions), all) || !find_places(all)) {
    return talks_;
  }
  std::vector<uint8_t> handle;
  const bool created = create();
  if (is_first_ && created) encode(handle_, handle);
  if (!step("join a switch: create", created, std::move(handle), all)) return talks_;
  const bool imported = import(all[request_.members[0]]);
  if (!step("join a switch: add", imported, {}, all)) return talks_;
  if (!step("join a switch: bind", bind_and_map(), {}, all)) return talks_;
  if (is_member_) {
    team = std::make_unique<MulticastTeam>(std::move(object_), std::move(places_));
  }
  return true;
}

}  // namespace

bool join_multicast(const JoinRequest& request, std::unique_ptr<SwitchTeam>& team,
                    Diagnostics& diagnostics) {
  return Join(request, diagnostics).run(team);
}

}  // namespace mscclc::cuda
