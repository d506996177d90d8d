// A rank's chunks, joined into messages: few for each peer, however many chunks there are.
#ifndef SLUICE_BENCH_RESHARD_BASELINES_PEER_MESSAGES_H_
#define SLUICE_BENCH_RESHARD_BASELINES_PEER_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace sluice::bench {

// A chunk that leaves or arrives, in the order that both ends of a pair know.
struct PeerChunk {
  int peer;
  size_t index;         // of the departure or the arrival
  size_t contribution;  // of the arrival
  int64_t bytes;        // on the wire; equal at both ends
};

// A chunk alone, or chunks that travel one after the other, each padded to kJoinedAlignment.
struct PeerMessage {
  int peer;
  std::vector<PeerChunk> chunks;
  int64_t bytes;              // with padding
  std::byte* data = nullptr;  // what is sent, or where it arrives
};

inline constexpr int64_t kJoinedAlignment = 8;  // of any element

// Bytes of a chunk in a joined message.
int64_t PaddedBytes(int64_t bytes);

// Both ends cut the chunks of a pair in the same places: into at most kMostMessages, each but the
// last of at least kLeastMessageBytes. So the first part of much data is unpacked while the next
// part is packed. Peers come in rotated order, from `rank` + `step` on: with a step of 1 as ranks
// send, with -1 as they are sent to. At any time all ranks serve different peers.
inline constexpr int64_t kMostMessages = 4;
inline constexpr int64_t kLeastMessageBytes = int64_t{1} << 20;
std::vector<PeerMessage> JoinByPeer(absl::Span<const PeerChunk> chunks, int rank, int ranks,
                                    int step);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_BASELINES_PEER_MESSAGES_H_
