// What every test of Catch2's includes, for precompiled.bzl.
#pragma once

#include <catch2/catch.hpp>

#include "tools/build_rules/common_headers.h"
