// Sorting chunks by peer, and cutting where enough has come together.
#include "reshard/baselines/peer_messages.h"

#include <algorithm>

#include "tensor/round.h"

namespace sluice::bench {
namespace {

void CutInto(const std::vector<PeerChunk>& chunks, std::vector<PeerMessage>* messages) {
  int64_t total = 0;
  for (const PeerChunk& chunk : chunks) total += PaddedBytes(chunk.bytes);
  const int64_t enough = std::max(kLeastMessageBytes, CeilDiv(total, kMostMessages));
  bool is_full = true;
  for (const PeerChunk& chunk : chunks) {
    if (is_full) messages->push_back({chunk.peer, {}, 0});
    PeerMessage& message = messages->back();
    message.chunks.push_back(chunk);
    message.bytes += PaddedBytes(chunk.bytes);
    is_full = message.bytes >= enough;
  }
}

}  // namespace

int64_t PaddedBytes(int64_t bytes) { return RoundUp(bytes, kJoinedAlignment); }

std::vector<PeerMessage> JoinByPeer(absl::Span<const PeerChunk> chunks, int rank, int ranks,
                                    int step) {
  std::vector<std::vector<PeerChunk>> by_turn(static_cast<size_t>(ranks));
  for (const PeerChunk& chunk : chunks) {
    const int turn = ((chunk.peer - rank) * step + ranks) % ranks;
    by_turn[static_cast<size_t>(turn)].push_back(chunk);
  }
  std::vector<PeerMessage> messages;
  for (const std::vector<PeerChunk>& of_peer : by_turn) CutInto(of_peer, &messages);
  for (PeerMessage& message : messages) {
    if (message.chunks.size() == 1) message.bytes = message.chunks[0].bytes;
  }
  return messages;
}

}  // namespace sluice::bench
