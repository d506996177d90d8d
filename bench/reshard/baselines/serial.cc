// Each chunk alone: its receiver, when it has put it in place, tells the next chunk's sender to go
// on. Never more than one message of payload is under way in the whole job.
#include <optional>

#include "reshard/baselines/baseline.h"
#include "reshard/baselines/rank_chunks.h"
#include "reshard/baselines/wire.h"

namespace sluice::bench {
namespace {

class Serial final : public Baseline {
 public:
  absl::Status Plan(const BaselineJob& job) override {
    rank_ = job.rank;
    wire_ = job.wire;
    chunks_.emplace(job);
    return absl::OkStatus();
  }

  absl::Status Run() override {
    const std::vector<RankChunks::Turn>& turns = chunks_->turns();
    for (size_t i = 0; i < turns.size(); ++i) {
      const bool hand_over = i > 0 && turns[i - 1].dst != turns[i].src;
      if (hand_over && turns[i - 1].dst == rank_) {
        absl::Status status = wire_->Send(nullptr, 0, turns[i].src, kTurnTag, &requests_);
        if (status.ok()) status = wire_->Wait(&requests_);
        if (!status.ok()) return status;
      }
      absl::Status status;
      if (turns[i].src == rank_) status = Depart(turns[i], hand_over ? turns[i - 1].dst : -1);
      if (status.ok() && turns[i].dst == rank_) status = Arrive(turns[i]);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  // `before`: the rank that says when, if another one does.
  absl::Status Depart(const RankChunks::Turn& turn, int before) {
    absl::Status status;
    if (before >= 0) status = wire_->Receive(nullptr, 0, before, kTurnTag, &requests_);
    if (status.ok()) status = wire_->Wait(&requests_);
    if (!status.ok()) return status;
    const Departure& departure = chunks_->departures()[static_cast<size_t>(turn.departure)];
    chunks_->Fill(departure);
    if (turn.dst == rank_) return absl::OkStatus();
    status = wire_->Send(departure.data, departure.bytes, turn.dst, kPayloadTag, &requests_);
    if (status.ok()) status = wire_->Wait(&requests_);
    return status;
  }

  absl::Status Arrive(const RankChunks::Turn& turn) {
    const Arrival& arrival = chunks_->arrivals()[static_cast<size_t>(turn.arrival)];
    absl::Status status;
    if (turn.src != rank_) {
      status = wire_->Receive(arrival.data[turn.contribution], arrival.bytes, turn.src, kPayloadTag,
                              &requests_);
    }
    if (status.ok()) status = wire_->Wait(&requests_);
    if (status.ok() && turn.completes) chunks_->Drain(arrival);
    return status;
  }

  int rank_ = -1;
  Wire* wire_ = nullptr;
  std::optional<RankChunks> chunks_;
  Wire::Requests requests_;
};

}  // namespace

std::unique_ptr<Baseline> MakeSerialBaseline() { return std::make_unique<Serial>(); }

}  // namespace sluice::bench
