// Lines of offers and of receives, by peer and tag: which send meets which receive.
#ifndef SLUICE_SRC_TRANSPORT_TAG_LINES_H_
#define SLUICE_SRC_TRANSPORT_TAG_LINES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tensor/check.h"

namespace sluice {

// The offers of a peer's sends, at their receiver, and the receives that wait for them. Within a
// peer and a tag both leave in the order in which they came. Either offers wait there, or receives.
// All lie in one pool: nothing is allocated as long as no more wait than Reserve has made room for.
// Decides nothing and knows no bytes. Thread: one at a time.
template <typename Offer, typename Receive = int>
class TagLines {
 public:
  static constexpr int kAllPeers = -1;

  // At most `most_offers` of one peer wait at once.
  explicit TagLines(int most_offers = std::numeric_limits<int>::max())
      : most_offers_(most_offers) {}

  // Room for so many offers and receives together, of peers below `peers`.
  void Reserve(size_t waiting, size_t peers) {
    if (peers > offers_of_.size()) offers_of_.resize(peers);
    nodes_.reserve(waiting);
    lines_.reserve(waiting + waiting / 8 + 16);  // so that what was erased makes none grow
  }

  // The first that waits, and from now on waits no more; nothing: none does.
  std::optional<Receive> TakeReceive(int peer, int tag) {
    Node* const node = TakeFirst(peer, tag, /*offers=*/false);
    return node == nullptr ? std::nullopt : std::optional<Receive>(node->receive);
  }
  std::optional<Offer> TakeOffer(int peer, int tag) {
    Node* const node = TakeFirst(peer, tag, /*offers=*/true);
    if (node == nullptr) return std::nullopt;
    --offers_of_[static_cast<size_t>(peer)];
    return std::move(node->offer);
  }

  // Both: behind those that wait already. Nothing that it could have met may wait. False, and it
  // does not wait: too many of the peer's do.
  void AddReceive(int peer, int tag, Receive receive) {
    Append(peer, tag, /*offers=*/false).receive = receive;
  }
  bool AddOffer(int peer, int tag, Offer offer) {
    const size_t at = static_cast<size_t>(peer);
    if (at >= offers_of_.size()) offers_of_.resize(at + 1);
    if (offers_of_[at] == most_offers_) return false;
    ++offers_of_[at];
    Append(peer, tag, /*offers=*/true).offer = std::move(offer);
    return true;
  }

  // Both: take all of a peer, or of all peers, and call `taken` for each, within a tag in order.
  // `taken` leaves these lines alone.
  template <typename Taken>
  void TakeReceives(int peer, Taken taken) {
    TakeAll(peer, /*offers=*/false, [&](Node& node) { taken(node.receive); });
  }
  template <typename Taken>
  void TakeOffers(int peer, Taken taken) {
    TakeAll(peer, /*offers=*/true, [&](Node& node) { taken(std::move(node.offer)); });
    for (size_t at = 0; at < offers_of_.size(); ++at) {
      if (peer == kAllPeers || at == static_cast<size_t>(peer)) offers_of_[at] = 0;
    }
  }
  void Forget(int peer) {
    TakeReceives(peer, [](const Receive&) {});
    TakeOffers(peer, [](const Offer&) {});
  }

 private:
  struct Node {
    Offer offer = {};
    Receive receive = {};
    int next = -1;
  };
  struct Line {
    int first = -1;
    int last = -1;
    bool offers = false;
  };

  static uint64_t KeyOf(int peer, int tag) {
    return static_cast<uint64_t>(peer) << 32 | static_cast<uint32_t>(tag);
  }
  Node& At(int index) { return nodes_[static_cast<size_t>(index)]; }
  void Free(int index) { At(index).next = std::exchange(unused_, index); }

  // The node is free; what it held stays until the next one is appended.
  Node* TakeFirst(int peer, int tag, bool offers) {
    const auto line = lines_.find(KeyOf(peer, tag));
    if (line == lines_.end() || line->second.offers != offers) return nullptr;
    const int index = line->second.first;
    line->second.first = At(index).next;
    if (line->second.first < 0) lines_.erase(line);
    Free(index);
    return &At(index);
  }

  Node& Append(int peer, int tag, bool offers) {
    if (unused_ < 0) {
      nodes_.emplace_back();
      unused_ = static_cast<int>(nodes_.size()) - 1;
    }
    const int index = unused_;
    unused_ = std::exchange(At(index).next, -1);
    Line& line = lines_[KeyOf(peer, tag)];
    SLUICE_CHECK(line.first < 0 || line.offers == offers, "an offer and its receive both wait");
    line.offers = offers;
    (line.first < 0 ? line.first : At(line.last).next) = index;
    line.last = index;
    return At(index);
  }

  template <typename Taken>
  void TakeAll(int peer, bool offers, Taken taken) {
    for (auto line = lines_.begin(); line != lines_.end();) {
      const auto at = line++;
      if (at->second.offers != offers) continue;
      if (peer != kAllPeers && static_cast<int>(at->first >> 32) != peer) continue;
      for (int index = at->second.first; index >= 0;) {
        const int next = At(index).next;
        Free(index);
        taken(At(index));
        index = next;
      }
      lines_.erase(at);
    }
  }

  int most_offers_;
  std::vector<int> offers_of_;  // by peer: that wait
  std::vector<Node> nodes_;
  int unused_ = -1;                            // the first node that is in no line
  absl::flat_hash_map<uint64_t, Line> lines_;  // none is empty
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TAG_LINES_H_
