// A carrier between fakes, with a handler that writes what it is asked to the fakes' log.
#ifndef SLUICE_TESTS_SESSION_CARRIER_RIG_H_
#define SLUICE_TESTS_SESSION_CARRIER_RIG_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fakes/log_device.h"
#include "fakes/log_transport.h"
#include "fakes/operations_log.h"
#include "gtest/gtest.h"
#include "session/base/carrier.h"
#include "session/base/carrier_steps.h"
#include "session/base/stage_operations.h"

namespace sluice {

inline constexpr size_t kSlotBytes = 64;

// What a bucket does: one copy, or none, in its fill and in its drain, and one receive.
struct Job {
  StageSet stages = kStageFill | kStageMove | kStageDrain;
  int channel = 0;
  bool copies = true;
};

// A handler, which adds what the jobs say and writes what the carrier tells it.
class Hands {
 public:
  Hands(OperationsLog* log, Carrier* carrier, size_t slots)
      : log_(log), carrier_(carrier), memory_(2 * slots * kSlotBytes), held_(slots) {
    log_->Name(memory_.data(), slots * kSlotBytes, "slot", kSlotBytes);
    log_->Name(memory_.data() + slots * kSlotBytes, slots * kSlotBytes, "user", kSlotBytes);
  }

  std::vector<Job> jobs;
  bool tells_steps = false;
  bool leaves = false;    // the next step, before it takes commands
  bool delivers = false;  // whoever polls should see each bucket that is over

  absl::StatusOr<bool> PollOthers() {
    if (tells_steps) log_->Write("step");
    return false;
  }
  absl::StatusOr<Carrier::Fed> Feed() {
    for (; fed_ < jobs.size() && carrier_->engine()->CanSubmit(); ++fed_) {
      Submission submission;
      submission.id = BucketId({.n = fed_});
      submission.channel = jobs[fed_].channel;
      submission.stages = jobs[fed_].stages;
      submission.cookie = fed_;
      tickets.push_back(carrier_->engine()->Submit(submission));
    }
    return std::exchange(leaves, false) ? Carrier::Fed::kLeave : Carrier::Fed::kNothing;
  }
  Carrier::Admission Admit(size_t slot, const Command& command) {
    held_[slot] = {command.cookie, false};
    log_->Write(absl::StrCat(command.cookie, " gets slot ", slot));
    return {JobOf(slot).stages, JobOf(slot).channel};
  }
  bool Copies(size_t slot, Stage stage) const {
    return stage != Stage::kMoving && JobOf(slot).copies;
  }
  absl::Status Begin(size_t slot, Stage stage) {
    held_[slot].has_copied = false;
    if (stage != Stage::kMoving) return Continue(slot, stage);
    const StageOperations to = carrier_->OperationsOf(slot);
    TransportOp op;
    op.kind = TransportOp::Kind::kReceive;
    op.peer = 1;
    op.data = SlotAt(slot);
    op.bytes = kSlotBytes;
    op.cookie = to.cookie;
    to.messages->push_back(op);
    ++*to.pending;
    return absl::OkStatus();
  }
  absl::Status Continue(size_t slot, Stage stage) {
    if (stage == Stage::kMoving || held_[slot].has_copied == JobOf(slot).copies) {
      return carrier_->EndStage(slot, this);
    }
    const bool fills = stage == Stage::kFilling;
    CopyQueue* const copies =
        carrier_->OperationsOf(slot, fills ? BatchStage::kFill : BatchStage::kDrain).copies;
    std::byte* const user = SlotAt(held_.size() + slot);
    std::byte* const from = fills ? user : SlotAt(slot);
    held_[slot].has_copied = true;
    absl::Status status = copies->AddFlat({from}, {fills ? SlotAt(slot) : user}, kSlotBytes);
    status.Update(copies->Flush());
    return status.ok() ? status : carrier_->Fail(slot, status);
  }
  void StageOver(size_t slot, Stage stage, bool last) {
    log_->Write(absl::StrCat(held_[slot].job, " is through ", StageName(stage),
                             last ? ", its last stage" : ""));
  }
  absl::Status BucketOver(size_t slot) {
    log_->Write(absl::StrCat(held_[slot].job, " is over"));
    if (delivers) carrier_->LeaveAfterStep();
    return absl::OkStatus();
  }
  absl::Status Flush() { return carrier_->Send(); }

  std::vector<Ticket> tickets;  // by job

 private:
  struct Held {
    size_t job = 0;
    bool has_copied = false;
  };
  const Job& JobOf(size_t slot) const { return jobs[held_[slot].job]; }
  std::byte* SlotAt(size_t number) { return memory_.data() + number * kSlotBytes; }

  OperationsLog* const log_;
  Carrier* const carrier_;
  std::vector<std::byte> memory_;
  std::vector<Held> held_;
  size_t fed_ = 0;
};

class CarrierTest : public testing::Test {
 protected:
  void Make(int slots) {
    const TransportTraits traits = {.name = "log"};
    auto transport = std::make_unique<LogTransport>(traits, &log_);
    transport_ = transport.get();
    Make(slots, std::move(transport));
  }
  void Make(int slots, std::unique_ptr<Transport> transport) {
    carrier_ = std::make_unique<Carrier>(&device_, std::move(transport));
    EngineOptions options = {.channels = 3, .max_in_flight = slots, .slots = slots};
    ASSERT_TRUE(carrier_->MakeRoom(&options, 2, 2 * static_cast<size_t>(slots)).ok());
    hands_ = std::make_unique<Hands>(&log_, carrier_.get(), static_cast<size_t>(slots));
    log_.Take();
  }
  // The lines of polling until nothing moves; a failure is the last line.
  std::vector<std::string> Poll() {
    bool moved = true;
    while (moved) {
      const absl::StatusOr<bool> polled = carrier_->Poll(hands_.get());
      moved = polled.ok() && *polled;
      if (!polled.ok()) log_.Write(absl::StrCat("failed: ", polled.status().message()));
    }
    return log_.Take();
  }
  // The lines of one call, which is to move something.
  std::vector<std::string> PollOnce() {
    const absl::StatusOr<bool> polled = carrier_->Poll(hands_.get());
    EXPECT_TRUE(polled.ok() && *polled) << polled.status();
    return log_.Take();
  }
  std::vector<std::string> Settle(bool parts, bool settles) {
    EXPECT_EQ(carrier_->Settle(parts, hands_.get()), settles);
    return log_.Take();
  }
  void End(const std::string& name, const absl::Status& status = absl::OkStatus()) {
    EXPECT_TRUE((status.ok() && device_.End(name)) || transport_->End(name, status)) << name;
  }

  OperationsLog log_;
  LogDevice device_{DeviceTraits(), &log_, "slot"};
  LogTransport* transport_ = nullptr;
  std::unique_ptr<Carrier> carrier_;
  std::unique_ptr<Hands> hands_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_SESSION_CARRIER_RIG_H_
