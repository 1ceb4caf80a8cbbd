// What the page shows of a program: what is wrong with it, whether it is proved, a picture and a
// timeline. Each part is handed out as soon as it is there.
#pragma once

#include <functional>
#include <string_view>

namespace mscclc::playground {

/// Takes a part of an answer: a JSON object in one line, without the line break.
using Sink = std::function<void(std::string_view part)>;

/// Answers a request (request.h). Parts of the answer, by "part":
///
///   error        "message": the request is none, and this is all
///   library      "programs": "name", "about" and "text" of each; "machines": their names
///   diagnostics  "list": as 'mscclc verify --json' prints them
///   verdict      "proved", and "text": what is proved, or that it is refused
///   picture      "html": a page; or "message": why there is none
///   timeline     "html": a page, "text": the explanation; or "message"
///   ir           "text"
///   patch        "title", "text": the whole program, with a change after which it is proved
///   end          there is no more
///
/// Of a program that does not compile there is neither picture nor IR, and of one that is refused
/// no timeline.
void answer(std::string_view request, const Sink& sink);

}  // namespace mscclc::playground
