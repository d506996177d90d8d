// Adding up ranks, and choosing a round.
#include "stream/outcome.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "plan/shard/cursor.h"
#include "session/stream/describe_stream.h"

template <>
struct nlohmann::adl_serializer<absl::Duration> {
  static void to_json(json& to, absl::Duration from) { to = absl::ToInt64Nanoseconds(from); }
  static void from_json(const json& from, absl::Duration& to) {
    to = absl::Nanoseconds(from.get<int64_t>());
  }
};

namespace sluice::bench {
namespace {

using OutcomeJson = nlohmann::json;

// What ranks come to together: by default a sum.
enum class Joined : uint8_t { kSum, kLargest, kPeak };  // a peak is one over rounds, too

// Lists the numbers of an outcome.
struct Numbers {
  struct Number {
    absl::string_view name;
    std::variant<int64_t*, double*, absl::Duration*> value;
    Joined joined;
  };
  explicit Numbers(RankOutcome* o) {
    Describe(*this, o->stats);
    EachOf(*this, "seconds", o->seconds, "half_s", o->half_s, "wait_s", o->wait_s, "later_wait_s",
           o->later_wait_s, "wrong", o->wrong, "cpu_s", o->cpu_s, "major_faults", o->major_faults);
  }
  template <typename T>
  void Field(absl::string_view name, T& value, const FieldRule& /*rule*/ = {}) {
    Joined joined = Joined::kSum;
    for (const char* one : {"seconds", "first_item_s", "half_s"}) {
      if (name == one) joined = Joined::kLargest;
    }
    for (const char* one : {"slots_max", "slots_peak", "budget_bytes", "budget_bytes_peak",
                            "slot_bytes", "buffer_bytes", "staleness_max"}) {
      if (name == one) joined = Joined::kPeak;
    }
    all.push_back({name, &value, joined});
  }

  std::vector<Number> all;
};

// Takes the peaks alone of another round.
void Join(RankOutcome from, bool peaks_alone, RankOutcome* to) {
  const std::vector<Numbers::Number> others = Numbers(&from).all;
  size_t i = 0;
  for (const Numbers::Number& number : Numbers(to).all) {
    const Numbers::Number& other = others[i++];
    if (peaks_alone && number.joined != Joined::kPeak) continue;
    std::visit(
        [&](auto* value) {
          const auto more = *std::get<decltype(value)>(other.value);
          *value = number.joined == Joined::kSum ? *value + more : std::max(*value, more);
        },
        number.value);
  }
  if (from.grown_bytes <= to->grown_bytes) return;
  to->grown_bytes = from.grown_bytes;
  to->grown_rank = from.grown_rank;
  to->grown_by = from.grown_by;
}

std::string MergedCursor(absl::Span<const RankOutcome> ranks) {
  std::vector<std::string> cursors;
  for (const RankOutcome& rank : ranks) {
    if (rank.cursor.empty()) return "";
    cursors.push_back(rank.cursor);
  }
  return MergeCursors(cursors).value_or("");
}

}  // namespace

double CpuPerGiB(const RankOutcome& outcome) {
  constexpr double kGiB = 1 << 30;
  const int64_t bytes = outcome.stats.bytes;
  return bytes > 0 ? outcome.cpu_s * kGiB / static_cast<double>(bytes) : 0;
}

std::string Encode(const RankOutcome& outcome) {
  OutcomeJson json = {{"cursor", outcome.cursor},
                      {"grown_bytes", outcome.grown_bytes},
                      {"grown_rank", outcome.grown_rank},
                      {"item_hash", outcome.item_hash},
                      {"grown_by", outcome.grown_by},
                      {"code", static_cast<int>(outcome.status.code())},
                      {"message", std::string(outcome.status.message())}};
  RankOutcome numbers = outcome;
  for (const Numbers::Number& number : Numbers(&numbers).all) {
    std::visit([&](auto* value) { json[std::string(number.name)] = *value; }, number.value);
  }
  return json.dump(-1, ' ', false, OutcomeJson::error_handler_t::replace);
}

RankOutcome DecodeOutcome(const std::string& text) {
  const OutcomeJson json = OutcomeJson::parse(text);
  RankOutcome outcome;
  for (const Numbers::Number& number : Numbers(&outcome).all) {
    std::visit([&](auto* value) { json.at(std::string(number.name)).get_to(*value); },
               number.value);
  }
  json.at("cursor").get_to(outcome.cursor);
  json.at("item_hash").get_to(outcome.item_hash);
  json.at("grown_bytes").get_to(outcome.grown_bytes);
  json.at("grown_rank").get_to(outcome.grown_rank);
  json.at("grown_by").get_to(outcome.grown_by);
  outcome.status = absl::Status(static_cast<absl::StatusCode>(json.at("code").get<int>()),
                                json.at("message").get<std::string>());
  return outcome;
}

// As scripts/measure/draw_trace.py has it.
absl::optional<double> OverlapOf(const RankOutcome& outcome) {
  const double busy_s = absl::ToDoubleSeconds(outcome.stats.busy);
  if (busy_s <= 0) return absl::nullopt;
  return std::clamp(1 - absl::ToDoubleSeconds(outcome.stats.waiting) / busy_s, 0.0, 1.0);
}

absl::optional<double> SequentialBytes(const RankOutcome& outcome) {
  const StreamStats& stats = outcome.stats;
  if (stats.read_runs <= 0) return absl::nullopt;
  return static_cast<double>(stats.bytes_read) / static_cast<double>(stats.read_runs);
}

Result SumOf(const std::string& mode, absl::Span<const RankOutcome> ranks) {
  Result result;
  result.mode = mode;
  RankOutcome& total = result.total;
  double later_s = 0;
  ItemHash hash;
  for (const RankOutcome& rank : ranks) {
    Join(rank, false, &total);
    hash.Add(rank.item_hash);
    later_s += std::max(0.0, rank.seconds - absl::ToDoubleSeconds(rank.stats.first_item));
  }
  if (later_s > 0) result.stall_share = total.later_wait_s / later_s;
  result.all_seconds = {total.seconds};
  total.item_hash = hash.value();
  total.cursor = MergedCursor(ranks);
  return result;
}

Result MedianOf(absl::Span<const Result> rounds) {
  std::vector<size_t> order(rounds.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return rounds[a].total.seconds < rounds[b].total.seconds; });
  Result median = rounds[order[(order.size() - 1) / 2]];
  median.all_seconds.clear();
  median.total.wrong = 0;
  // The first round is the one that is recorded.
  median.total.stats.trace_left_out = rounds[0].total.stats.trace_left_out;
  for (const Result& round : rounds) {
    median.all_seconds.push_back(round.total.seconds);
    median.total.wrong += round.total.wrong;
    Join(round.total, true, &median.total);
  }
  return median;
}

}  // namespace sluice::bench
