// The comparison gates.
#include "deadlock/plain_gate.h"

#include <algorithm>
#include <cstddef>

namespace sluice::deadlock {

PlainGate::PlainGate(const EngineOptions& options, PlainRule rule)
    : options_(options), rule_(rule), channels_(static_cast<size_t>(options.channels)) {
  for (int slot = options.slots - 1; slot >= 0; --slot) free_slots_.push_back(slot);
}

Ticket PlainGate::Submit(const Submission& submission) {
  records_.push_back({.submission = submission});
  ++live_;
  return static_cast<Ticket>(records_.size() - 1);
}

bool PlainGate::Next(Command* command) {
  do {
    for (Record& record : records_) {
      if (!MayBegin(record)) continue;
      record.stage = NextStage(record.stage, record.submission.stages);
      record.under_way = true;
      *command = {.ticket = static_cast<Ticket>(&record - records_.data()),
                  .stage = record.stage,
                  .cookie = record.submission.cookie,
                  .id = record.submission.id,
                  .slot = record.slot};
      return true;
    }
  } while (AdmitOne());
  return false;
}

void PlainGate::Finish(Ticket ticket) {
  Record& record = records_[ticket];
  record.under_way = false;
  if (NextStage(record.stage, record.submission.stages) != Stage::kDone) return;
  record.stage = Stage::kDone;
  record.admitted = false;
  --live_;
  --channels_[static_cast<size_t>(record.submission.channel)].in_flight;
  free_slots_.push_back(record.slot);
  --counters_.held_buckets;
}

// True if a stage comes next and, where it is the move, it is the bucket's turn in its channel.
bool PlainGate::MayBegin(const Record& record) const {
  if (!record.admitted || record.under_way) return false;
  if (NextStage(record.stage, record.submission.stages) != Stage::kMoving) return true;
  return std::none_of(records_.begin(), records_.end(), [&record](const Record& other) {
    return other.submission.channel == record.submission.channel && other.stage < Stage::kMoving &&
           (other.submission.stages & kStageMove) != 0 && &other < &record;
  });
}

// Each channel's first waiting bucket, from the channel on whose turn it is.
std::vector<PlainGate::Record*> PlainGate::FirstOfEachChannel() {
  std::vector<Record*> first(channels_.size());
  for (Record& record : records_) {
    if (record.admitted || HasEnded(record.stage)) continue;
    const int turn = record.submission.channel - next_channel_;
    Record*& place = first[static_cast<size_t>(turn < 0 ? turn + options_.channels : turn)];
    if (place == nullptr) place = &record;
  }
  std::erase(first, nullptr);
  return first;
}

// The buckets that may be looked at, most urgent first; under kUnannounced the smallest of the
// unfinished comes before them.
std::vector<PlainGate::Record*> PlainGate::InOrderOfAdmission() {
  if (rule_ == PlainRule::kRoundRobin) return FirstOfEachChannel();
  std::vector<Record*> order;
  for (Record& record : records_) {
    if (HasEnded(record.stage)) continue;
    if (rule_ == PlainRule::kUnannounced || !record.admitted) order.push_back(&record);
  }
  if (rule_ == PlainRule::kWhateverFits) return order;
  const auto by_id = [](const Record* a, const Record* b) {
    return a->submission.id < b->submission.id;
  };
  std::sort(order.begin(), order.end(), by_id);
  if (rule_ == PlainRule::kHeadOfLine) {
    if (order.size() > 1) order.erase(order.begin() + 1, order.end());
  } else if (!order.empty()) {
    std::stable_sort(order.begin() + 1, order.end(), [](const Record* a, const Record* b) {
      return a->submission.lane < b->submission.lane;
    });
  }
  return order;
}

bool PlainGate::MayAdmit(const Record& record, const Record* smallest) const {
  const ChannelCounters& channel = channel_counters(record.submission.channel);
  if (record.admitted || free_slots_.empty() || channel.in_flight == options_.max_in_flight) {
    return false;
  }
  if (rule_ != PlainRule::kUnannounced || &record == smallest) return true;
  const bool is_first_of_channel =
      std::none_of(records_.begin(), records_.end(), [&record](const Record& other) {
        return &other < &record && other.submission.channel == record.submission.channel &&
               !other.admitted && !HasEnded(other.stage);
      });
  const size_t held_by_smallest = smallest->admitted ? 1 : 0;
  return is_first_of_channel && free_slots_.size() + held_by_smallest >= 2;
}

bool PlainGate::AdmitOne() {
  const std::vector<Record*> order = InOrderOfAdmission();
  const auto next = std::find_if(order.begin(), order.end(), [&](const Record* record) {
    return MayAdmit(*record, order.front());
  });
  if (next == order.end()) return false;
  Record& record = **next;
  record.slot = free_slots_.back();
  free_slots_.pop_back();
  record.admitted = true;
  next_channel_ = (record.submission.channel + 1) % options_.channels;
  ++channels_[static_cast<size_t>(record.submission.channel)].in_flight;
  ++counters_.held_buckets;
  return true;
}

}  // namespace sluice::deadlock
