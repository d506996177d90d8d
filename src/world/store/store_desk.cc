// Carrying out requests, and waits.
#include "world/store/store_desk.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tensor/quoted.h"
#include "world/store/store_check.h"
#include "world/store/store_clock.h"

namespace sluice {
namespace {

constexpr int kMaxWaitsPerClient = 64;
constexpr size_t kMaxHoldsPerClient = 4096;

int64_t EndNs(int64_t now_ns, int64_t wait_ms) {
  return now_ns + StoreWaitNs(absl::Milliseconds(wait_ms));
}

}  // namespace

StoreDesk::StoreDesk(const StoreLimits& limits)
    : table_(limits.keys, limits.bytes), next_ns_(kStoreNever) {
  table_.OnChange([this](absl::string_view key) { NoteChange(key); });
}

void StoreDesk::NoteChange(absl::string_view key) {
  for (Wait& wait : waits_) {
    const bool concerns =
        wait.call == StoreCall::kGet ? wait.key == key : absl::StartsWith(key, wait.key);
    if (!concerns) continue;
    wait.due = true;
    some_due_ = true;
  }
}

std::optional<StoreReply> StoreDesk::Take(uint64_t client, const StoreRequest& request,
                                          int64_t now_ns) {
  StoreReply reply;
  reply.id = request.id;
  int64_t end_ns = 0;
  switch (request.call) {
    case StoreCall::kPing:
      return reply;
    case StoreCall::kGet:
      reply.status = CheckStoreKey(request.key);
      if (!reply.status.ok()) return reply;
      if (const std::string* const value = table_.Find(request.key); value != nullptr) {
        reply.value = *value;
        return reply;
      }
      end_ns = EndNs(now_ns, request.number);
      break;
    case StoreCall::kList:
      end_ns = now_ns;
      break;
    case StoreCall::kWatch:
      reply.status = CheckStorePrefix(request.key);
      if (!reply.status.ok()) return reply;
      end_ns = table_.ChangedSince(request.key, request.version) ? now_ns
                                                                 : EndNs(now_ns, request.number);
      break;
    default:
      Change(client, request, &reply);
      return reply;
  }
  // Long answers are made when there is room to send them.
  if (AddWait(client, request, end_ns)) return std::nullopt;
  reply.status = absl::ResourceExhaustedError(
      absl::StrCat("a client has more than ", kMaxWaitsPerClient, " calls that wait in the store"));
  return reply;
}

void StoreDesk::Change(uint64_t client, const StoreRequest& request, StoreReply* reply) {
  if (request.call == StoreCall::kSet) {
    reply->status = table_.Set(request.key, request.value);
  } else if (request.call == StoreCall::kAdd) {
    const auto sum = table_.Add(request.key, request.number);
    reply->status = sum.status();
    reply->number = sum.value_or(0);
  } else if (request.call == StoreCall::kCompareSet) {
    auto value = table_.CompareSet(request.key, request.expected, request.value);
    reply->status = value.status();
    if (value.ok()) reply->value = *std::move(value);
  } else if (request.call == StoreCall::kHold) {
    Hold(client, request, reply);
  } else {
    const auto hold = static_cast<uint64_t>(request.number);
    const auto at = clients_.find(client);
    if (at == clients_.end() || at->second.holds.erase(hold) == 0) return;
    table_.Release(request.key, hold);
  }
}

void StoreDesk::Hold(uint64_t client, const StoreRequest& request, StoreReply* reply) {
  const int64_t lease_ms = request.number;
  reply->status = CheckStoreHold(request.key, request.value, absl::Milliseconds(lease_ms));
  if (!reply->status.ok()) return;
  Client& holder = clients_[client];
  if (holder.holds.size() >= kMaxHoldsPerClient) {
    reply->status = absl::ResourceExhaustedError(
        absl::StrCat("a client of the store holds ", kMaxHoldsPerClient, " keys already"));
    return;
  }
  const auto hold = table_.Hold(request.key, request.value);
  reply->status = hold.status();
  if (!hold.ok()) return;
  holder.holds[*hold] = {std::string(request.key), lease_ms};
  reply->number = static_cast<int64_t>(*hold);
}

bool StoreDesk::AddWait(uint64_t client, const StoreRequest& request, int64_t end_ns) {
  Client& waiter = clients_[client];
  if (waiter.waits >= kMaxWaitsPerClient) return false;
  ++waiter.waits;
  waits_.push_back(
      {client, request.id, request.call, std::string(request.key), request.version, end_ns, false});
  next_ns_ = std::min(next_ns_, end_ns);
  return true;
}

void StoreDesk::AnswerDue(
    int64_t now_ns, const std::function<bool(uint64_t client)>& can_take,
    const std::function<void(uint64_t client, const StoreReply& reply)>& answer) {
  if (!some_due_ && !some_left_ && now_ns < next_ns_) return;
  some_due_ = some_left_ = false;
  next_ns_ = kStoreNever;
  for (auto at = waits_.begin(); at != waits_.end();) {
    if (at->end_ns <= now_ns) at->due = true;
    if (!at->due) {
      next_ns_ = std::min(next_ns_, at->end_ns);
      ++at;
      continue;
    }
    if (!can_take(at->client)) {
      some_left_ = true;
      ++at;
      continue;
    }
    const auto reply = AnswerWait(*at, now_ns);
    if (!reply.has_value()) {
      at->due = false;
      next_ns_ = std::min(next_ns_, at->end_ns);
      ++at;
      continue;
    }
    const uint64_t client = at->client;
    --clients_[client].waits;
    at = waits_.erase(at);
    answer(client, *reply);
  }
}

std::optional<StoreReply> StoreDesk::AnswerWait(const Wait& wait, int64_t now_ns) const {
  StoreReply reply;
  reply.id = wait.id;
  if (wait.call == StoreCall::kGet) {
    const std::string* const value = table_.Find(wait.key);
    if (value != nullptr) {
      reply.value = *value;
    } else if (now_ns < wait.end_ns) {
      return std::nullopt;
    } else {
      reply.status = absl::DeadlineExceededError(
          absl::StrCat("the store's key ", Quoted(wait.key), " had no value in time"));
    }
    return reply;
  }
  auto entries = table_.List(wait.key);
  reply.status = entries.status();
  if (entries.ok()) reply.entries = *std::move(entries);
  reply.version = table_.version();
  return reply;
}

void StoreDesk::Forget(uint64_t client) {
  const auto at = clients_.find(client);
  if (at == clients_.end()) return;
  if (at->second.waits > 0) {
    waits_.remove_if([&](const Wait& wait) { return wait.client == client; });
  }
  for (const auto& [hold, held] : at->second.holds) table_.Release(held.key, hold);
  clients_.erase(at);
}

int64_t StoreDesk::ShortestLeaseMs(uint64_t client) const {
  const auto at = clients_.find(client);
  if (at == clients_.end()) return 0;
  int64_t shortest_ms = 0;
  for (const auto& [hold, held] : at->second.holds) {
    shortest_ms = shortest_ms == 0 ? held.lease_ms : std::min(shortest_ms, held.lease_ms);
  }
  return shortest_ms;
}

}  // namespace sluice
