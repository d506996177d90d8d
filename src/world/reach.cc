// Pages that members look for.
#include "world/reach.h"

#include <cstring>
#include <map>

#include "net/hmac.h"
#include "tensor/stable_hash.h"

namespace sluice {
namespace {

bool Reaches(const ReachCard& own, const ReachCard& other) {
  if (other.page.pid < 0 || !SeeEachOther(own.process, other.process)) return false;
  if (other.page.bytes < sizeof(other.word)) return false;
  const auto page = SharedSegment::Attach(other.page);
  if (!page.ok()) return false;
  uint64_t word = 0;
  std::memcpy(&word, (*page)->data(), sizeof(word));
  return word == other.word;
}

}  // namespace

ReachPage ReachPage::Make() {
  ReachPage made;
  made.card_.process = OwnProcessName();
  uint64_t word = 0;
  if (!FillRandom({reinterpret_cast<std::byte*>(&word), sizeof(word)}).ok()) return made;
  auto page = SharedSegment::Create(sizeof(word));
  if (!page.ok()) return made;
  std::memcpy((*page)->data(), &word, sizeof(word));
  made.card_.page = (*page)->name();
  made.card_.word = word;
  made.page_ = *std::move(page);
  return made;
}

uint64_t ReachOf(int rank, absl::Span<const ReachCard> cards) {
  StableHash hash;
  const ReachCard& own = cards[static_cast<size_t>(rank)];
  for (size_t other = 0; other < cards.size(); ++other) {
    if (static_cast<int>(other) != rank && !Reaches(own, cards[other])) continue;
    hash.Add(other);
  }
  return hash.value();
}

std::vector<int> NodesByReach(absl::Span<const uint64_t> reach) {
  std::map<uint64_t, int> known;
  std::vector<int> nodes;
  nodes.reserve(reach.size());
  for (const uint64_t each : reach) {
    nodes.push_back(known.emplace(each, static_cast<int>(known.size())).first->second);
  }
  return nodes;
}

}  // namespace sluice
