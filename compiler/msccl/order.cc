#include "compiler/msccl/order.h"

#include <fmt/format.h>

namespace mscclc::msccl {
namespace {

/// Calls visit(id, block, step) for all steps.
template <class Visit>
void each_step(const Schedule& s, Visit&& visit) {
  for (uint32_t g = 0; g < s.gpus.size(); ++g) {
    for (uint32_t b = 0; b < s.gpus[g].blocks.size(); ++b) {
      const Block& block = s.gpus[g].blocks[b];
      for (uint32_t i = 0; i < block.steps.size(); ++i)
        visit(StepId{g, b, i}, block, block.steps[i]);
    }
  }
}

/// One side of a connection belongs to one thread block.
bool claim(std::map<Connection, std::pair<uint32_t, uint32_t>>& owners, const Connection& c,
           const StepId& id, const Step& step, const char* does, Diagnostics& diagnostics) {
  const auto [at, added] = owners.try_emplace(c, id.gpu, id.block);
  if (at->second == std::pair(id.gpu, id.block)) return true;
  diagnostics.error(
      "msccl", step.span,
      fmt::format(
          "thread blocks {} and {} of GPU {} both {} over channel {} between GPUs {} and {}",
          at->second.second, id.block, id.gpu, does, c.channel, c.from, c.to));
  return false;
}

/// The k-th message that is sent over a connection is the k-th that is received.
class Matching {
 public:
  explicit Matching(const Schedule& schedule) : schedule_(schedule) {}

  std::optional<std::map<Connection, std::vector<Message>>> run(Diagnostics& diagnostics) {
    bool good = true;
    each_step(schedule_, [&](const StepId& id, const Block& block, const Step& step) {
      if (step.info().sends) {
        const Connection c{id.gpu, block.send, block.channel};
        good &= claim(senders_, c, id, step, "send", diagnostics);
        sent_[c].push_back(id);
      }
      if (step.info().receives) {
        const Connection c{block.receive, id.gpu, block.channel};
        good &= claim(receivers_, c, id, step, "receive", diagnostics);
        received_[c].push_back(id);
      }
    });
    std::map<Connection, std::vector<Message>> all;
    for (const auto& [c, sent] : sent_) good &= match(c, sent, received_[c], all[c], diagnostics);
    for (const auto& [c, received] : received_) {
      if (sent_.contains(c) || received.empty()) continue;
      good = false;
      diagnostics.error(
          "msccl", schedule_.step(received[0]).span,
          fmt::format("GPU {} sends nothing to GPU {} over channel {}", c.from, c.to, c.channel));
    }
    if (!good) return std::nullopt;
    return all;
  }

 private:
  bool match(const Connection& c, const std::vector<StepId>& sent,
             const std::vector<StepId>& received, std::vector<Message>& messages,
             Diagnostics& diagnostics) {
    if (sent.size() != received.size()) {
      diagnostics.error(
          "msccl", schedule_.step(sent[0]).span,
          fmt::format("GPU {} sends {} messages to GPU {} over channel {}, which receives {}",
                      c.from, sent.size(), c.to, c.channel, received.size()));
      return false;
    }
    uint32_t first = 0;
    for (size_t i = 0; i < sent.size(); ++i) {
      const Step &from = schedule_.step(sent[i]), &to = schedule_.step(received[i]);
      if (from.count != to.count) {
        diagnostics
            .error("msccl", from.span,
                   fmt::format("a message of {} chunks, of which {} are received", from.count,
                               to.count))
            .notes.push_back({.text = "it is received here", .span = to.span});
        return false;
      }
      messages.push_back({sent[i], received[i], first});
      first += from.count;
    }
    return true;
  }

  const Schedule& schedule_;
  std::map<Connection, std::pair<uint32_t, uint32_t>> senders_, receivers_;
  std::map<Connection, std::vector<StepId>> sent_, received_;
};

/// Does all steps, each as soon as what it waits for is done.
class Run {
 public:
  Run(const Schedule& schedule, Order& order) : schedule_(schedule), order_(order) {
    for (const Gpu& gpu : schedule.gpus) done_.emplace_back(gpu.blocks.size());
    for (const auto& [c, messages] : order.messages) {
      for (const Message& m : messages) sender_[m.received] = m.sent;
    }
  }

  bool run(Diagnostics& diagnostics) {
    for (bool any = true; any;) {
      any = false;
      for (uint32_t g = 0; g < done_.size(); ++g) {
        for (uint32_t b = 0; b < done_[g].size(); ++b) any |= advance(g, b);
      }
    }
    bool ended = true;
    for (uint32_t g = 0; g < done_.size(); ++g) {
      for (uint32_t b = 0; b < done_[g].size(); ++b) {
        const std::vector<Step>& steps = schedule_.gpus[g].blocks[b].steps;
        if (done_[g][b] == steps.size()) continue;
        ended = false;
        diagnostics.error(
            "msccl", steps[done_[g][b]].span,
            fmt::format("step {} of thread block {} of GPU {} waits forever", done_[g][b], b, g));
      }
    }
    return ended;
  }

 private:
  /// Does the steps of a block that can be done; false if there was none.
  bool advance(uint32_t g, uint32_t b) {
    const std::vector<Step>& steps = schedule_.gpus[g].blocks[b].steps;
    const uint32_t before = done_[g][b];
    while (done_[g][b] < steps.size() && ready({g, b, done_[g][b]})) {
      order_.steps.push_back({g, b, done_[g][b]++});
    }
    return done_[g][b] != before;
  }
  bool is_done(const StepId& id) const { return id.step < done_[id.gpu][id.block]; }
  bool ready(const StepId& id) const {
    const Step& step = schedule_.step(id);
    if (step.after_block != kNoPeer && !is_done({id.gpu, step.after_block, step.after_step}))
      return false;
    const auto sender = sender_.find(id);
    return sender == sender_.end() || is_done(sender->second);
  }

  const Schedule& schedule_;
  Order& order_;
  std::vector<std::vector<uint32_t>> done_;
  std::map<StepId, StepId> sender_;  ///< by what receives
};

}  // namespace

uint32_t Order::room(const Schedule& schedule, const Connection& connection) const {
  const Message& last = messages.at(connection).back();
  return last.first + schedule.step(last.sent).count;
}

std::optional<Order> find_order(const Schedule& schedule, Diagnostics& diagnostics) {
  auto messages = Matching(schedule).run(diagnostics);
  if (!messages) return std::nullopt;
  Order order{*std::move(messages), {}};
  if (!Run(schedule, order).run(diagnostics)) return std::nullopt;
  return order;
}

}  // namespace mscclc::msccl
