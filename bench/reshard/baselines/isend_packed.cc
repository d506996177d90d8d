// All chunks for a peer in one message, or a few where there is much: the careful author's way.
// Receives are posted first. Each rank begins with the rank after it, so that no receiver is met by
// all at once. Messages are unpacked as they arrive, own chunks copied while messages travel.
#include <optional>

#include "reshard/baselines/baseline.h"
#include "reshard/baselines/rank_chunks.h"
#include "reshard/baselines/wire.h"

namespace sluice::bench {
namespace {

class IsendPacked final : public Baseline {
 public:
  absl::Status Plan(const BaselineJob& job) override {
    wire_ = job.wire;
    chunks_.emplace(job, Joining::kByPeer);
    missing_.resize(chunks_->arrivals().size());
    return absl::OkStatus();
  }

  absl::Status Run() override {
    for (size_t i = 0; i < missing_.size(); ++i) missing_[i] = chunks_->arrivals()[i].src.size();
    absl::Status status = PostReceives();
    if (status.ok()) status = FillAndSend();
    if (!status.ok()) return status;
    KeepOwn();
    while (under_way_ > 0) {
      status = wire_->WaitSome(&receives_, &done_);
      if (!status.ok()) return status;
      TakeDone();
    }
    return wire_->Wait(&sends_);
  }

 private:
  absl::Status PostReceives() {
    receives_.clear();
    message_of_.clear();
    parts_.clear();
    for (const PeerMessage& message : chunks_->receives()) {
      const size_t before = receives_.size();
      absl::Status status =
          wire_->Receive(message.data, message.bytes, message.peer, kPayloadTag, &receives_);
      if (!status.ok()) return status;
      message_of_.resize(receives_.size(), parts_.size());
      parts_.push_back(receives_.size() - before);
    }
    under_way_ = receives_.size();
    return absl::OkStatus();
  }

  absl::Status FillAndSend() {
    for (const PeerMessage& message : chunks_->sends()) {
      for (const PeerChunk& chunk : message.chunks) {
        chunks_->Fill(chunks_->departures()[chunk.index]);
      }
      absl::Status status =
          wire_->Send(message.data, message.bytes, message.peer, kPayloadTag, &sends_);
      if (status.ok()) status = Wire::TestSome(&receives_, &done_);
      if (!status.ok()) return status;
      TakeDone();
    }
    return absl::OkStatus();
  }

  void KeepOwn() {
    for (const RankChunks::Turn& turn : chunks_->turns()) {
      if (turn.departure < 0 || turn.arrival < 0) continue;
      chunks_->Fill(chunks_->departures()[static_cast<size_t>(turn.departure)]);
      Arrived(static_cast<size_t>(turn.arrival));
    }
  }

  // What has come whole by the requests that are done.
  void TakeDone() {
    under_way_ -= done_.size();
    for (const int request : done_) {
      const size_t message = message_of_[static_cast<size_t>(request)];
      if (--parts_[message] > 0) continue;
      for (const PeerChunk& chunk : chunks_->receives()[message].chunks) Arrived(chunk.index);
    }
  }

  // One of the chunks of an arrival is there.
  void Arrived(size_t arrival) {
    if (--missing_[arrival] == 0) chunks_->Drain(chunks_->arrivals()[arrival]);
  }

  Wire* wire_ = nullptr;
  std::optional<RankChunks> chunks_;
  Wire::Requests receives_;
  Wire::Requests sends_;
  std::vector<size_t> message_of_;  // of each request of receives_
  std::vector<size_t> parts_;       // requests of each message that are under way
  std::vector<size_t> missing_;     // chunks of each arrival that are not there
  size_t under_way_ = 0;            // receives
  std::vector<int> done_;
};

}  // namespace

std::unique_ptr<Baseline> MakeIsendPackedBaseline() { return std::make_unique<IsendPacked>(); }

}  // namespace sluice::bench
