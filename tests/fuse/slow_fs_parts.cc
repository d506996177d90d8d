// Fate, delays and counts.
#include "fuse/slow_fs_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace sluice::fuse {
namespace {

// What is decided, so that decisions about one read are independent.
enum class Question : uint64_t { kJitter = 1, kTail, kEio, kDead, kShort, kTruncate };

uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t HashOf(absl::string_view text) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// Decisions about one attempt, or about one offset.
class Dice {
 public:
  Dice(uint64_t seed, absl::string_view path, uint64_t offset, uint64_t attempt)
      : state_(Mix(Mix(Mix(Mix(seed) ^ HashOf(path)) ^ offset) ^ attempt)) {}

  // In [0, 1).
  double Draw(Question question) const {
    return static_cast<double>(Mix(state_ ^ static_cast<uint64_t>(question)) >> 11) * 0x1p-53;
  }

 private:
  uint64_t state_;
};

}  // namespace

Fate FateOf(const FatePlan& plan, absl::string_view path, uint64_t offset, int attempt) {
  const Dice once(plan.seed, path, offset, static_cast<uint64_t>(attempt));
  const Dice always(plan.seed, path, offset, ~uint64_t{0});
  double delay_ms = plan.latency_ms * (1 + plan.jitter * (2 * once.Draw(Question::kJitter) - 1));
  if (once.Draw(Question::kTail) * 100 < plan.tail_percent) delay_ms *= plan.tail_factor;
  Fate fate = {.delay_ns = static_cast<int64_t>(delay_ms * 1e6)};
  if (always.Draw(Question::kDead) < plan.dead_share ||
      once.Draw(Question::kEio) < plan.eio_share) {
    fate.outcome = Outcome::kError;
  } else if (always.Draw(Question::kTruncate) < plan.truncate_share) {
    fate.outcome = Outcome::kTruncated;
  } else if (once.Draw(Question::kShort) < plan.short_share) {
    fate.outcome = Outcome::kShort;
  }
  return fate;
}

absl::Status ParseFaults(const std::string& text, FatePlan* plan) {
  for (const absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> fault = absl::StrSplit(part, ':');
    double share = 0;
    double* const wanted = fault.first == "eio"        ? &plan->eio_share
                           : fault.first == "dead"     ? &plan->dead_share
                           : fault.first == "short"    ? &plan->short_share
                           : fault.first == "truncate" ? &plan->truncate_share
                                                       : nullptr;
    if (wanted == nullptr || !absl::SimpleAtod(fault.second, &share) || !(share >= 0) ||
        share > 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "\"", part, "\" is no fault: eio, dead, short or truncate, a colon, and a share of 1"));
    }
    *wanted = share;
  }
  return absl::OkStatus();
}

DelayedReplies::DelayedReplies(int threads, int hold) : hold_(static_cast<size_t>(hold)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

void DelayedReplies::Add(int64_t delay_ns, std::function<void()> reply) {
  AddEntry(delay_ns, std::move(reply), true);
}

void DelayedReplies::AddFree(int64_t delay_ns, std::function<void()> reply) {
  AddEntry(delay_ns, std::move(reply), false);
}

void DelayedReplies::AddEntry(int64_t delay_ns, std::function<void()> reply, bool held) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopping_) return reply();
  Entry entry{Clock::now() + std::chrono::nanoseconds(delay_ns), added_++, std::move(reply)};
  if (!held || hold_ == 0) {
    waiting_.push(std::move(entry));
    changed_.notify_one();
    return;
  }
  held_.push_back(std::move(entry));
  if (held_.size() == hold_) Release();
}

void DelayedReplies::Release() {
  for (Entry& entry : held_) waiting_.push(std::move(entry));
  held_.clear();
  hold_ = 0;
  changed_.notify_all();
}

void DelayedReplies::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    if (waiting_.empty()) {
      if (stopping_) return;
      changed_.wait(lock);
      continue;
    }
    const Clock::time_point due = waiting_.top().due;
    if (!stopping_ && due > Clock::now()) {
      changed_.wait_until(lock, due);
      continue;
    }
    // The queue gives no way to move out of it; the entry leaves in the next line.
    const std::function<void()> reply = std::move(const_cast<Entry&>(waiting_.top()).reply);
    waiting_.pop();
    lock.unlock();
    reply();
    lock.lock();
  }
}

void DelayedReplies::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
    Release();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

uint64_t Ledger::NumberOf(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [entry, is_new] = numbers_.try_emplace(path, objects_.size() + 1);
  if (is_new) objects_.emplace_back().path = path;
  return entry->second;
}

std::string Ledger::PathOf(uint64_t object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(object).path;
}

void Ledger::CountOpen(uint64_t object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++At(object).opens;
}

int Ledger::BeginRead(uint64_t object, uint64_t offset) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++At(object).reads;
  in_flight_max_ = std::max(in_flight_max_, ++in_flight_);
  return At(object).attempts[offset]++;
}

void Ledger::EndRead(uint64_t object, uint64_t bytes, bool failed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  At(object).bytes += bytes;
  At(object).errors += failed ? 1 : 0;
  --in_flight_;
}

void Ledger::Truncate(uint64_t object, uint64_t end_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  At(object).end_bytes = std::min(At(object).end_bytes, end_bytes);
}

uint64_t Ledger::EndOf(uint64_t object) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return At(object).end_bytes;
}

std::string Ledger::Report() {
  const std::lock_guard<std::mutex> lock(mutex_);
  nlohmann::json objects = nlohmann::json::object();
  for (const Object& object : objects_) {
    if (object.opens == 0) continue;
    objects[object.path] = {{"opens", object.opens},
                            {"reads", object.reads},
                            {"bytes", object.bytes},
                            {"errors", object.errors}};
  }
  const nlohmann::json report = {{"reports", ++reports_},
                                 {"in_flight", in_flight_},
                                 {"in_flight_max", in_flight_max_},
                                 {"objects", std::move(objects)}};
  return report.dump(1) + "\n";
}

}  // namespace sluice::fuse
