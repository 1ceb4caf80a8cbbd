#include "compiler/evaluate/values.h"

#include <catch2/catch.hpp>

using namespace mscclc;

TEST_CASE("values of names are put aside and brought back") {
  NameValues names(4);
  const Locals locals = {1, 3};
  names.of(1) = Value::of(10);
  names.of(3) = Value::of_bool(true);
  names.set_locals(2, &locals);
  const size_t mark = names.save(names.locals(2));
  names.of(1) = Value::of(11);
  names.of(3) = {};
  names.restore(locals, mark);
  CHECK(names.of(1).integer == 10);
  CHECK(names.of(3).kind == ValueKind::boolean);
  CHECK(names.of(0).kind == ValueKind::unbound);
  CHECK(names.mark() == mark);
}

TEST_CASE("an arena of lists gives memory again once it is released") {
  ListArena arena;
  const ListArena::Mark mark = arena.mark();
  int64_t* first = arena.allocate(3);
  const List* list = arena.make(List::range(2, 5));
  REQUIRE(list != nullptr);
  CHECK((*list)[2] == 4);
  CHECK(arena.allocate(5000) != nullptr);
  arena.release(mark);
  CHECK(arena.allocate(3) == first);
  CHECK(arena.allocate(ListArena::kMaxElements + 1) == nullptr);
}
