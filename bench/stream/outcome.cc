// Adding up ranks, and choosing a round.
#include "stream/outcome.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "plan/shard/cursor.h"
#include "sluice/stream.h"
#include "stream/item_hash.h"

namespace sluice::bench {
namespace {

using OutcomeJson = nlohmann::json;

// Calls visit(name, field, field of other) for each field that is a number.
template <typename A, typename B, typename Visit>
void ForEachSum(A* a, B* b, Visit visit) {
  visit("items", &a->items, &b->items);
  visit("bytes", &a->bytes, &b->bytes);
  visit("later_wait_s", &a->later_wait_s, &b->later_wait_s);
  visit("requests", &a->requests, &b->requests);
  visit("bytes_read", &a->bytes_read, &b->bytes_read);
  visit("read_runs", &a->read_runs, &b->read_runs);
  visit("trace_left_out", &a->trace_left_out, &b->trace_left_out);
  visit("busy", &a->busy_s, &b->busy_s);
  visit("next_wait", &a->next_wait_s, &b->next_wait_s);
  visit("opens", &a->opens, &b->opens);
  visit("connections", &a->connections, &b->connections);
  visit("hedges", &a->hedges, &b->hedges);
  visit("hedges_won", &a->hedges_won, &b->hedges_won);
  visit("retries", &a->retries, &b->retries);
  visit("wrong", &a->wrong, &b->wrong);
  visit("bytes_copied", &a->bytes_copied, &b->bytes_copied);
  visit("cpu_s", &a->cpu_s, &b->cpu_s);
  visit("major_faults", &a->major_faults, &b->major_faults);
  visit("read", &a->stage_s.read, &b->stage_s.read);
  visit("exchange", &a->stage_s.exchange, &b->stage_s.exchange);
  visit("copy", &a->stage_s.copy, &b->stage_s.copy);
  visit("consume", &a->stage_s.consume, &b->stage_s.consume);
  visit("wait", &a->stage_s.wait, &b->stage_s.wait);
}

template <typename A, typename B, typename Visit>
void ForEachPeak(A* a, B* b, Visit visit) {
  visit("peak_slots", &a->peak_slots, &b->peak_slots);
  visit("peak_bytes", &a->peak_bytes, &b->peak_bytes);
  visit("limit_slots", &a->limit_slots, &b->limit_slots);
  visit("limit_bytes", &a->limit_bytes, &b->limit_bytes);
  visit("device_bytes", &a->device_bytes, &b->device_bytes);
  visit("staleness_max", &a->staleness_max, &b->staleness_max);
}

template <typename A, typename B, typename Visit>
void ForEachLargest(A* a, B* b, Visit visit) {
  visit("seconds", &a->seconds, &b->seconds);
  visit("first_item_s", &a->first_item_s, &b->first_item_s);
  visit("half_s", &a->half_s, &b->half_s);
  ForEachPeak(a, b, visit);
}

void TakeLargerGrowth(const RankOutcome& from, RankOutcome* to) {
  if (from.grown_bytes <= to->grown_bytes) return;
  to->grown_bytes = from.grown_bytes;
  to->grown_rank = from.grown_rank;
  to->grown_by = from.grown_by;
}

constexpr auto kTakeLarger = [](const char*, auto* to, const auto* from) {
  *to = std::max(*to, *from);
};

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
  return outcome.bytes > 0 ? outcome.cpu_s * kGiB / static_cast<double>(outcome.bytes) : 0;
}

std::string Encode(const RankOutcome& outcome) {
  OutcomeJson json = {{"cursor", outcome.cursor},
                      {"grown_bytes", outcome.grown_bytes},
                      {"grown_rank", outcome.grown_rank},
                      {"item_hash", outcome.item_hash},
                      {"grown_by", outcome.grown_by},
                      {"code", static_cast<int>(outcome.status.code())},
                      {"message", std::string(outcome.status.message())}};
  const auto put = [&](const char* name, const auto* value, const auto*) { json[name] = *value; };
  ForEachSum(&outcome, &outcome, put);
  ForEachLargest(&outcome, &outcome, put);
  return json.dump(-1, ' ', false, OutcomeJson::error_handler_t::replace);
}

RankOutcome DecodeOutcome(const std::string& text) {
  const OutcomeJson json = OutcomeJson::parse(text);
  RankOutcome outcome;
  const auto get = [&](const char* name, auto* value, auto*) { json.at(name).get_to(*value); };
  ForEachSum(&outcome, &outcome, get);
  ForEachLargest(&outcome, &outcome, get);
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
  if (outcome.busy_s <= 0) return absl::nullopt;
  return std::clamp(1 - outcome.next_wait_s / outcome.busy_s, 0.0, 1.0);
}

absl::optional<double> SequentialBytes(const RankOutcome& outcome) {
  if (outcome.read_runs <= 0) return absl::nullopt;
  return static_cast<double>(outcome.bytes_read) / static_cast<double>(outcome.read_runs);
}

Result SumOf(const std::string& mode, absl::Span<const RankOutcome> ranks) {
  Result result;
  result.mode = mode;
  RankOutcome& total = result.total;
  double later_s = 0;
  ItemHash hash;
  for (const RankOutcome& rank : ranks) {
    ForEachSum(&total, &rank, [](const char*, auto* to, const auto* from) { *to += *from; });
    ForEachLargest(&total, &rank, kTakeLarger);
    TakeLargerGrowth(rank, &total);
    hash.Add(rank.item_hash);
    later_s += std::max(0.0, rank.seconds - rank.first_item_s);
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
  median.total.trace_left_out = rounds[0].total.trace_left_out;  // the one that is recorded
  for (const Result& round : rounds) {
    median.all_seconds.push_back(round.total.seconds);
    median.total.wrong += round.total.wrong;
    ForEachPeak(&median.total, &round.total, kTakeLarger);
    TakeLargerGrowth(round.total, &median.total);
  }
  return median;
}

}  // namespace sluice::bench
