// The control of the searches: a gate without the reserved slot, a plain counting semaphore that
// admits whatever fits, first submitted first; and one that keeps the slot, but does not listen to
// what lanes announce. They show that a search can find a stuck job.
#ifndef SLUICE_TESTS_ENGINE_PLAIN_GATE_H_
#define SLUICE_TESTS_ENGINE_PLAIN_GATE_H_

#include <vector>

#include "engine/engine.h"

namespace sluice {

// Takes buckets in any order of ids. Ignores look_ahead. Gives slot numbers out as Engine does.
class PlainGate {
 public:
  explicit PlainGate(const EngineOptions& options) : PlainGate(options, Rule::kWhateverFits) {}

  bool CanSubmit(int /*lane*/) const { return true; }
  void Announce(int /*lane*/, const BucketId& /*next*/) {}
  void Close(int /*lane*/) {}
  Ticket Submit(const Submission& submission);
  bool Next(Command* command);
  void Finish(Ticket ticket);

  bool idle() const { return live_ == 0; }
  const EngineCounters& counters() const { return counters_; }
  const ChannelCounters& channel_counters(int channel) const {
    return channels_[static_cast<size_t>(channel)];
  }

 protected:
  enum class Rule : uint8_t { kWhateverFits, kSlotForTheSmallestSubmitted };
  PlainGate(const EngineOptions& options, Rule rule);

 private:
  struct Record {
    Submission submission;
    Stage stage = Stage::kWaiting;
    bool admitted = false;
    bool under_way = false;
    std::array<int, kMaxSlotsPerBucket> slots = {-1, -1};
  };

  bool MayBegin(const Record& record) const;
  bool AdmitOne();
  std::vector<Record*> InOrderOfAdmission();
  bool MayAdmit(const Record& record, const Record* smallest) const;

  EngineOptions options_;
  Rule rule_;
  EngineCounters counters_;
  std::vector<ChannelCounters> channels_;
  std::vector<Record> records_;  // by ticket
  std::vector<int> free_slots_;
  int live_ = 0;
};

// The engine's rule of admission, lanes included, but with the smallest bucket that happens to have
// been submitted for the smallest one.
class UnannouncedGate : public PlainGate {
 public:
  explicit UnannouncedGate(const EngineOptions& options)
      : PlainGate(options, Rule::kSlotForTheSmallestSubmitted) {}
};

}  // namespace sluice

#endif  // SLUICE_TESTS_ENGINE_PLAIN_GATE_H_
