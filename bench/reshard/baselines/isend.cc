// Every chunk a message, straight from and to tensor memory where that is one stretch; all posted
// at once, waited for together.
#include <optional>

#include "reshard/baselines/baseline.h"
#include "reshard/baselines/rank_chunks.h"
#include "reshard/baselines/wire.h"

namespace sluice::bench {
namespace {

class Isend final : public Baseline {
 public:
  absl::Status Plan(const BaselineJob& job) override {
    rank_ = job.rank;
    wire_ = job.wire;
    chunks_.emplace(job);
    size_t messages = chunks_->departures().size();
    for (const Arrival& arrival : chunks_->arrivals()) messages += arrival.src.size();
    requests_.reserve(messages);
    return absl::OkStatus();
  }

  absl::Status Run() override {
    absl::Status status = PostReceives();
    if (status.ok()) status = FillAndSend();
    if (status.ok()) status = wire_->Wait(&requests_);
    if (!status.ok()) return status;
    for (const Arrival& arrival : chunks_->arrivals()) chunks_->Drain(arrival);
    return absl::OkStatus();
  }

 private:
  absl::Status PostReceives() {
    for (const Arrival& arrival : chunks_->arrivals()) {
      for (size_t i = 0; i < arrival.src.size(); ++i) {
        if (arrival.src[i] == rank_) continue;
        absl::Status status =
            wire_->Receive(arrival.data[i], arrival.bytes, arrival.src[i], kPayloadTag, &requests_);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status FillAndSend() {
    for (const Departure& departure : chunks_->departures()) {
      chunks_->Fill(departure);
      if (departure.dst == rank_) continue;
      absl::Status status =
          wire_->Send(departure.data, departure.bytes, departure.dst, kPayloadTag, &requests_);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  int rank_ = -1;
  Wire* wire_ = nullptr;
  std::optional<RankChunks> chunks_;
  Wire::Requests requests_;
};

}  // namespace

std::unique_ptr<Baseline> MakeIsendBaseline() { return std::make_unique<Isend>(); }

}  // namespace sluice::bench
