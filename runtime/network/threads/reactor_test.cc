// A handler that finds no memory: what it is to do then it does until there is some, and the thread
// goes on.
#include "runtime/network/threads/reactor.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <new>
#include <thread>

namespace mscclc::net {
namespace {

template <class Test>
bool comes_true(Test test) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
  while (!test()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_CASE("a handler without memory does what it is to do then, and others are called") {
  Diagnostics diagnostics;
  const auto reactor = Reactor::start(std::chrono::microseconds(0), {}, diagnostics);
  REQUIRE(reactor != nullptr);
  const Fd lacking = make_waker(), asks_again = make_waker(), other = make_waker();
  std::atomic<int> said = 0, asked = 0, called = 0;
  Reactor::Token token = 0;
  {
    const auto held = reactor->hold();
    token = reactor->add(
        lacking, EPOLLIN, [](uint32_t) { throw std::bad_alloc(); },
        [&] {
          if (++said < 3) throw std::bad_alloc();
          reactor->remove(lacking, token);
        });
    CHECK(token != 0);
    CHECK(reactor->add(asks_again, EPOLLIN, [&](uint32_t) {
      if (++asked < 3) throw std::bad_alloc();
      drain(asks_again);
    }) != 0);
    CHECK(reactor->add(other, EPOLLIN, [&](uint32_t) {
      drain(other);
      ++called;
    }) != 0);
  }
  wake(lacking);
  wake(asks_again);
  CHECK(comes_true([&] { return said == 3 && asked == 3; }));
  wake(other);
  CHECK(comes_true([&] { return called == 1; }));
  CHECK(said == 3);
}

TEST_CASE("a thread of lanes that finds no memory to begin with is an error") {
  Diagnostics diagnostics;
  const BeginThread begin = [](Diagnostics&) -> bool { throw std::bad_alloc(); };
  CHECK(Reactor::start(std::chrono::microseconds(0), begin, diagnostics) == nullptr);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].message == "there is not enough memory for a thread of lanes");
}

}  // namespace
}  // namespace mscclc::net
