// Other rules of admission, to compare the engine's with. None of them is in the product.
#ifndef SLUICE_TESTS_DEADLOCK_PLAIN_GATE_H_
#define SLUICE_TESTS_DEADLOCK_PLAIN_GATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/engine.h"

namespace sluice::deadlock {

// How a comparison gate chooses among the buckets that wait. Each is a plain counting semaphore
// that never has more slots out than there are, keeps to max_in_flight, and no more.
enum class PlainRule : uint8_t {
  kWhateverFits,  // the first submitted of those that fit
  kRoundRobin,    // goes round the channels: the first waiting one of the next channel, if it fits
  kHeadOfLine,    // the smallest waiting one if it fits, or nothing
  kUnannounced,   // the engine's rule, lanes included, but with the smallest bucket that happens
                  // to have been submitted for the smallest one
};

// Takes buckets in any order of ids. Ignores look_ahead. Gives slot numbers out as Engine does.
// Linear scans, as only small jobs come here.
class PlainGate {
 public:
  explicit PlainGate(const EngineOptions& options, PlainRule rule = PlainRule::kWhateverFits);

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

 private:
  struct Record {
    Submission submission;
    Stage stage = Stage::kWaiting;
    bool admitted = false;
    bool under_way = false;
    int slot = -1;
  };

  bool MayBegin(const Record& record) const;
  bool AdmitOne();
  std::vector<Record*> InOrderOfAdmission();
  std::vector<Record*> FirstOfEachChannel();
  bool MayAdmit(const Record& record, const Record* smallest) const;

  EngineOptions options_;
  PlainRule rule_;
  EngineCounters counters_;
  std::vector<ChannelCounters> channels_;
  std::vector<Record> records_;  // by ticket
  std::vector<int> free_slots_;
  int live_ = 0;
  int next_channel_ = 0;  // of kRoundRobin
};

// A type of its own for searches that are templates of their gate.
class UnannouncedGate : public PlainGate {
 public:
  explicit UnannouncedGate(const EngineOptions& options)
      : PlainGate(options, PlainRule::kUnannounced) {}
};

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_DEADLOCK_PLAIN_GATE_H_
