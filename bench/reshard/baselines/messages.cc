// Ways of plain messages: one chunk at a time, all chunks at once, or chunks joined by peer.
#include <optional>

#include "reshard/baselines/baseline.h"
#include "reshard/baselines/rank_chunks.h"
#include "reshard/baselines/wire.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

class Messages : public Baseline {
 public:
  explicit Messages(Joining joining) : joining_(joining) {}

  absl::Status Plan(const BaselineJob& job) override {
    rank_ = job.rank;
    wire_ = job.wire;
    chunks_.emplace(job, joining_);
    return absl::OkStatus();
  }

 protected:
  using Turn = RankChunks::Turn;

  const Departure& DepartureOf(const Turn& turn) const {
    return chunks_->departures()[static_cast<size_t>(turn.departure)];
  }
  const Arrival& ArrivalOf(const Turn& turn) const {
    return chunks_->arrivals()[static_cast<size_t>(turn.arrival)];
  }

  const Joining joining_;
  int rank_ = -1;
  Wire* wire_ = nullptr;
  std::optional<RankChunks> chunks_;
  Wire::Requests requests_;
};

// Each chunk alone: its receiver, when it has put it in place, tells the next chunk's sender to go
// on. Never more than one message of payload is under way in the whole job.
class Serial final : public Messages {
 public:
  Serial() : Messages(Joining::kNone) {}

  absl::Status Run() override {
    const Turn* before = nullptr;
    for (const Turn& turn : chunks_->turns()) {
      const bool hand_over = before != nullptr && before->dst != turn.src;
      if (hand_over && before->dst == rank_) {
        SLUICE_RETURN_IF_ERROR(wire_->Send(nullptr, 0, turn.src, kTurnTag, &requests_));
        SLUICE_RETURN_IF_ERROR(wire_->Wait(&requests_));
      }
      if (turn.src == rank_) SLUICE_RETURN_IF_ERROR(Depart(turn, hand_over ? before->dst : -1));
      if (turn.dst == rank_) SLUICE_RETURN_IF_ERROR(Arrive(turn));
      before = &turn;
    }
    return absl::OkStatus();
  }

 private:
  // `before`: the rank that says when, if another one does.
  absl::Status Depart(const Turn& turn, int before) {
    if (before >= 0) {
      SLUICE_RETURN_IF_ERROR(wire_->Receive(nullptr, 0, before, kTurnTag, &requests_));
    }
    SLUICE_RETURN_IF_ERROR(wire_->Wait(&requests_));
    const Departure& departure = DepartureOf(turn);
    chunks_->Fill(departure);
    if (turn.dst == rank_) return absl::OkStatus();
    SLUICE_RETURN_IF_ERROR(
        wire_->Send(departure.data, departure.bytes, turn.dst, kPayloadTag, &requests_));
    return wire_->Wait(&requests_);
  }

  absl::Status Arrive(const Turn& turn) {
    const Arrival& arrival = ArrivalOf(turn);
    absl::Status status;
    if (turn.src != rank_) {
      status = wire_->Receive(arrival.data[turn.contribution], arrival.bytes, turn.src, kPayloadTag,
                              &requests_);
    }
    if (status.ok()) status = wire_->Wait(&requests_);
    if (status.ok() && turn.completes) chunks_->Drain(arrival);
    return status;
  }
};

// Every chunk a message, straight from and to tensor memory where that is one stretch; all posted
// at once, waited for together.
class Isend final : public Messages {
 public:
  Isend() : Messages(Joining::kNone) {}

  absl::Status Run() override {
    for (const Arrival& arrival : chunks_->arrivals()) {
      for (size_t i = 0; i < arrival.src.size(); ++i) {
        if (arrival.src[i] == rank_) continue;
        SLUICE_RETURN_IF_ERROR(wire_->Receive(arrival.data[i], arrival.bytes, arrival.src[i],
                                              kPayloadTag, &requests_));
      }
    }
    for (const Departure& departure : chunks_->departures()) {
      chunks_->Fill(departure);
      if (departure.dst == rank_) continue;
      SLUICE_RETURN_IF_ERROR(
          wire_->Send(departure.data, departure.bytes, departure.dst, kPayloadTag, &requests_));
    }
    SLUICE_RETURN_IF_ERROR(wire_->Wait(&requests_));
    for (const Arrival& arrival : chunks_->arrivals()) chunks_->Drain(arrival);
    return absl::OkStatus();
  }
};

// All chunks for a peer in one message, or a few where there is much: the careful author's way.
// Receives are posted first. Each rank begins with the rank after it, so that no receiver is met by
// all at once. Messages are unpacked as they arrive, own chunks copied while messages travel.
class IsendPacked final : public Messages {
 public:
  IsendPacked() : Messages(Joining::kByPeer) {}

  absl::Status Run() override {
    missing_.clear();
    for (const Arrival& arrival : chunks_->arrivals()) missing_.push_back(arrival.src.size());
    SLUICE_RETURN_IF_ERROR(PostReceives());
    SLUICE_RETURN_IF_ERROR(FillAndSend());
    KeepOwn();
    while (under_way_ > 0) {
      SLUICE_RETURN_IF_ERROR(wire_->WaitSome(&requests_, &done_));
      TakeDone();
    }
    return wire_->Wait(&sends_);
  }

 private:
  absl::Status PostReceives() {
    requests_.clear();
    message_of_.clear();
    parts_.clear();
    for (const PeerMessage& message : chunks_->receives()) {
      const size_t before = requests_.size();
      SLUICE_RETURN_IF_ERROR(
          wire_->Receive(message.data, message.bytes, message.peer, kPayloadTag, &requests_));
      message_of_.resize(requests_.size(), parts_.size());
      parts_.push_back(requests_.size() - before);
    }
    under_way_ = requests_.size();
    return absl::OkStatus();
  }

  absl::Status FillAndSend() {
    for (const PeerMessage& message : chunks_->sends()) {
      for (const PeerChunk& chunk : message.chunks) {
        chunks_->Fill(chunks_->departures()[chunk.index]);
      }
      SLUICE_RETURN_IF_ERROR(
          wire_->Send(message.data, message.bytes, message.peer, kPayloadTag, &sends_));
      SLUICE_RETURN_IF_ERROR(Wire::TestSome(&requests_, &done_));
      TakeDone();
    }
    return absl::OkStatus();
  }

  void KeepOwn() {
    for (const Turn& turn : chunks_->turns()) {
      if (turn.departure < 0 || turn.arrival < 0) continue;
      chunks_->Fill(DepartureOf(turn));
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

  Wire::Requests sends_;            // requests_ are the receives
  std::vector<size_t> message_of_;  // of each receive
  std::vector<size_t> parts_;       // receives of each message that are under way
  std::vector<size_t> missing_;     // chunks of each arrival that are not there
  size_t under_way_ = 0;            // receives
  std::vector<int> done_;
};

}  // namespace

std::unique_ptr<Baseline> MakeSerialBaseline() { return std::make_unique<Serial>(); }
std::unique_ptr<Baseline> MakeIsendBaseline() { return std::make_unique<Isend>(); }
std::unique_ptr<Baseline> MakeIsendPackedBaseline() { return std::make_unique<IsendPacked>(); }

}  // namespace sluice::bench
