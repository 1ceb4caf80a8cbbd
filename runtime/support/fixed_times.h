// Every time of the runtime that is fixed, and why it may be. How long a rank waits for another is
// not among them: that is MSCCLC_TIMEOUT, and how long one that says nothing counts as living
// MSCCLC_SILENCE. A process may be stopped, or get no processor, at any place for that long: what
// ends earlier must be tried again, or cost nothing but a moment. tests/structure/times_test.cc
// finds constants of this kind elsewhere.
//
// Not here: rests of microseconds to some milliseconds, by which threads find the middle between
// speed and load.
#pragma once

#include <chrono>

namespace mscclc {

// How often something is looked at. A pause makes it later, no more.

/// A wait asks this often whether what it waits for cannot come any more.
constexpr std::chrono::milliseconds kAskAgain{50};
/// The watchdog looks whether blocks have given up.
constexpr std::chrono::milliseconds kWatchdogPeriod{100};
/// When ranks have failed, it looks more often for so long: blocks see it at once, if they run.
constexpr std::chrono::milliseconds kHaste{50};
/// The bootstrap's threads look up, while something is under way.
constexpr std::chrono::milliseconds kBusyTick{20};
/// How long nothing is accepted where there are no descriptors left.
constexpr std::chrono::milliseconds kNoDescriptors{50};
/// A name of a machine is resolved again, which may become known later.
constexpr std::chrono::milliseconds kResolveAgain{2000};
/// Pauses between attempts to reach a hub, which grow.
constexpr std::chrono::milliseconds kFirstPause{5}, kLongestPause{250};

// What ends an attempt, which is then made again.

/// A rank leaves a place where nothing has answered for so long, and tries it again.
constexpr std::chrono::milliseconds kAnswerPatience{4000};
/// A process that has connected has so long to say what it wants and prove that it may: its place,
/// one of few, may be wanted by others. A rank that took longer, as it was stopped, connects again.
constexpr std::chrono::milliseconds kTimeToProve{5000};
/// It keeps its place at least for so long, even if others come that have no room.
constexpr std::chrono::milliseconds kLeastTimeToProve{200};
/// A rank whose connection ended before it was answered tries again if it had been open for so
/// long: what is refused is refused at once.
constexpr std::chrono::milliseconds kMayHaveBeenSlow{1000};
/// Kernels of a plan that another process compiles may take it so long; then they are compiled
/// here, too.
constexpr std::chrono::milliseconds kOtherCompilation{60'000};

/// A launch waits so long for room on a device whose copies the host makes
/// (core/group/copy_calls.h), and mostly goes on without: a thread that launches all calls of one
/// rank, then those of the next, waits for itself.
constexpr std::chrono::milliseconds kRoomPatience{250};

// What follows an end that has been decided already.

/// An end that closes waits for the other to read what is under way. What is on its way by then
/// comes all the same.
constexpr std::chrono::milliseconds kGoodbyeTime{2000};
/// A lane that ends waits so long for its peers to read its last words and close, too. A peer that
/// is stopped finds them at its machine.
constexpr std::chrono::milliseconds kFarewell{1000};
/// A hub whose job has failed waits for ranks that have not come yet, to say so; a rank that gives
/// up tries to reach the hub, to say so. Ranks that come later end after MSCCLC_TIMEOUT.
constexpr std::chrono::milliseconds kAnnounceTime{5000};
/// What a rank waits longer than its hub, whose own error says more.
constexpr std::chrono::milliseconds kGraceForHub{3000};
/// Blocks have given up, after MSCCLC_TIMEOUT, so the job ends: how long its ranks may take to say
/// for which ranks they wait. It decides what the error says.
constexpr std::chrono::milliseconds kReportTime{10'000};
/// The last lines of the log, as a process ends, wait so long for a reader that takes none.
constexpr std::chrono::milliseconds kLastLines{1000};
/// A process that ends since a call was cut short waits so long for those reports.
constexpr std::chrono::milliseconds kShortReportTime{500};
/// Rank 0 looks so long for a hub where its job's ranks look for one, if that is another machine.
/// Without it ranks that meet in two places end later, after MSCCLC_TIMEOUT.
constexpr std::chrono::milliseconds kTwinPatience{1000};
/// A process that ends waits for the kernels that it is compiling, most of which take a second. An
/// end before that may crash in the compiler.
constexpr std::chrono::milliseconds kLastCompilation{60'000};

}  // namespace mscclc
