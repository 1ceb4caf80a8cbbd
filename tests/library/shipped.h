// The library in plans/, with its table.
#pragma once

#include <catch2/catch.hpp>
#include <utility>

#include "tools/io/library.h"

namespace mscclc {

/// Read once. REQUIRES: runs in the repository root.
inline const Library& shipped() {
  static const auto library = [] {
    Diagnostics diagnostics;
    auto found = open_library("plans", diagnostics);
    REQUIRE(found);
    return *std::move(found);
  }();
  return library;
}

}  // namespace mscclc
