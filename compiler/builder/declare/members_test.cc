#include "compiler/builder/declare/members.h"

#include <catch2/catch.hpp>

using namespace mscclc;

namespace {

struct WithMembers {
  Diagnostics diagnostics;
  BuildReports reports{diagnostics, nullptr, nullptr};
  Draft draft{reports};
  Names names{reports, draft};
  KeyedMembers members{reports, draft, names};
  const NameId ch = draft.program.intern("ch");
  WithMembers() {
    draft.program.ranks.resize(1);
    names.set_ranks(1);
    members.set_ranks(1);
    draft.enter(0);
    names.begin_rank();
    members.begin_rank();
  }
  bool add(std::vector<int64_t> keys) {
    const auto index = static_cast<uint32_t>(draft.out->channels.size());
    if (!members.add(ch, DeclKind::channel, keys, index, {index + 1, index + 2})) return false;
    Channel c;
    c.label = {ch, draft.program.append(keys)};
    draft.out->channels.push_back(c);
    return true;
  }
  uint32_t find(std::vector<int64_t> keys) {
    return members.member(DeclKind::channel, ch, keys, {});
  }
  std::string message() const { return diagnostics.all().back().message; }
};

}  // namespace

TEST_CASE("members are found by their keys, dense or far apart") {
  for (const int64_t far : {int64_t{6}, int64_t{1} << 40}) {
    WithMembers w;
    CHECK(w.add({5, 0}));
    CHECK(w.add({far, 1}));
    w.members.build_tables(0);
    CHECK(w.find({5, 0}) == 0);
    CHECK(w.find({far, 1}) == 1);
    CHECK(w.find({5, 1}) == kNone);
    CHECK(w.message() == "rank 0 has no 'ch[5, 1]'");
    CHECK(w.members.mark(0, DeclKind::channel, 1).begin == 2);
  }
}

TEST_CASE("members of one name have equally many keys, and differ") {
  for (const int64_t far : {int64_t{6}, int64_t{1} << 40}) {
    WithMembers w;
    CHECK(w.add({1}));
    CHECK_FALSE(w.add({1, 2}));
    CHECK(w.message() == "'ch' is already declared");
    CHECK(w.add({far}));
    CHECK(w.add({1}));
    w.members.build_tables(0);
    CHECK(w.message() == "'ch[1]' is declared twice on rank 0");
    CHECK(w.names.is_poisoned(w.ch));
  }
}

TEST_CASE("a name that stands for something else is the wrong kind") {
  WithMembers w;
  CHECK_FALSE(w.members.wrong_kind(0, w.ch, DeclKind::semaphore, {}));
  CHECK(w.message() == "rank 0 has no semaphore 'ch'");
  CHECK(w.add({}));
  CHECK_FALSE(w.members.wrong_kind(0, w.ch, DeclKind::semaphore, {}));
  CHECK(w.message() == "'ch' is a channel; expected a semaphore");
}
