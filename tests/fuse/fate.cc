// Fates from hashes.
#include "fuse/fate.h"

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
  Fate fate;
  fate.delay_ns = static_cast<int64_t>(delay_ms * 1e6);
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

}  // namespace sluice::fuse
