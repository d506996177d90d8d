// One rank's part of the chunks, with the memory they leave from and arrive in: shared by the
// baselines that send chunks as messages, each alone or joined by peer.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_RANK_CHUNKS_H_
#define SLUICE_BENCH_RESHARD_BASELINES_RANK_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reshard/baselines/baseline.h"
#include "reshard/baselines/chunks.h"
#include "reshard/baselines/peer_messages.h"

namespace sluice::bench {

// A chunk that this rank sends, perhaps to itself.
struct Departure {
  size_t tensor;
  int dst;
  Block block;
  bool straight;    // sent from the tensor's own memory
  std::byte* data;  // what is sent
  int64_t bytes;
};

// A region that this rank receives: one chunk, or as many as there are contributions.
struct Arrival {
  size_t tensor;
  Block block;
  bool straight;  // received into the tensor's own memory
  std::vector<int> src;
  std::vector<std::byte*> data;  // where each chunk arrives
  int64_t bytes;                 // of each chunk
  std::vector<ReduceStep> steps;
};

enum class Joining { kNone, kByPeer };

class RankChunks {
 public:
  // Plans this rank's part of `job` and allocates buffers for whatever does not lie in one stretch,
  // has another dtype than it travels as, or travels with other chunks.
  explicit RankChunks(const BaselineJob& job, Joining joining = Joining::kNone);

  // All chunks of the job, in order; with the index of this rank's departure and arrival, or -1.
  struct Turn {
    int src;
    int dst;
    int64_t departure;
    int64_t arrival;
    size_t contribution;
    bool completes;  // its arrival
  };
  const std::vector<Turn>& turns() const { return turns_; }

  const std::vector<Departure>& departures() const { return departures_; }
  const std::vector<Arrival>& arrivals() const { return arrivals_; }

  // With Joining::kByPeer, what goes to other ranks and comes from them.
  const std::vector<PeerMessage>& sends() const { return sends_; }
  const std::vector<PeerMessage>& receives() const { return receives_; }

  // Makes what `departure` sends; nothing if it goes straight.
  void Fill(const Departure& departure) const;
  // Once all its chunks are there: reduces, casts and puts them in their place.
  void Drain(const Arrival& arrival) const;

 private:
  void AddTurn(const Chunk& chunk);
  int64_t AddDeparture(const Chunk& chunk);
  int64_t AddArrival(const Chunk& chunk);
  void JoinMessages();
  std::byte*& DataOf(const PeerChunk& chunk, bool arrives);
  // Has the chunks of joined messages lie one after the other.
  void PlaceJoined();
  void PlaceBuffers();
  void ShareOwnChunks();
  const TensorTransfer& TensorOf(size_t index) const { return job_.spec->tensors[index]; }

  BaselineJob job_;
  std::vector<Turn> turns_;
  std::vector<Departure> departures_;
  std::vector<Arrival> arrivals_;
  std::vector<PeerMessage> sends_;
  std::vector<PeerMessage> receives_;
  std::vector<std::byte> joined_;  // chunks of joined messages
  std::vector<std::byte> buffer_;  // all others
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_RANK_CHUNKS_H_
