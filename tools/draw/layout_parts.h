// The two halves of a layout: what is drawn, and where it stands.
#pragma once

#include <optional>
#include <string>

#include "ir/support/result.h"
#include "tools/draw/choose.h"
#include "tools/draw/layout.h"
#include "tools/draw/picture.h"
#include "tools/draw/steps.h"

namespace mscclc::draw {

/// Higher pictures are no picture for a screen.
inline constexpr double kScreenHeight = 1080;

/// Bands, boxes, arrows and frames, without places. `once`: what a block repeats is drawn once.
Result<Picture> build_picture(const Program& program, const Steps& steps,
                              const std::vector<Flow>& flows, const Choice& choice,
                              const DrawOptions& options, bool once);

/// Gives everything its place.
void place(Picture& picture);

/// Joins arrows of one row from each of several boxes to all others into buses.
void join_arrows(Picture& picture);

}  // namespace mscclc::draw
