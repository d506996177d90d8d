// Hands what comes to a worker of UCX to its receivers.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "transport/ucx/ucx_hub.h"
#include "transport/ucx/ucx_transport.h"

namespace sluice {
namespace {

// Most steps of one call, so that the call returns now and then.
constexpr int kAdvanceSteps = 8;

// Strays are rare, and cost nothing until their turn comes.
constexpr uint32_t kAdvancesPerStrayHunt = 64;

// Transports that others may have opened before this rank does.
constexpr int kUnopenedMax = 256;

absl::Status Garbage(absl::string_view what) {
  return absl::InternalError(absl::StrCat("it has sent garbage: ", what));
}

}  // namespace

// UCX is in the middle of its own work: what has come is only put aside.
ucs_status_t UcxHub::OnMessage(void* hub, const void* /*header*/, size_t /*header_length*/,
                               void* data, size_t length, const ucp_am_recv_param_t* param) {
  const bool whole = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
  if (whole) static_cast<UcxHub*>(hub)->TakeBatch(static_cast<const std::byte*>(data), length);
  return UCS_OK;
}

// A sender without the token is a stranger, or means another worker: nobody listens to it.
void UcxHub::TakeBatch(const std::byte* bytes, size_t length) {
  UcxBatchHead head;
  if (length < sizeof(head)) return;
  std::memcpy(&head, bytes, sizeof(head));
  if (head.token != token_ || head.version != UcxBatchHead().version) return;
  if (head.src >= peers_.size() || head.src == static_cast<uint32_t>(rank_)) return;
  if (head.count > kUcxBatchRecords || length != sizeof(head) + head.count * sizeof(UcxRecord)) {
    return;
  }
  const int src = static_cast<int>(head.src);
  if (!peer(src).failure().ok() || !peer(src).TakeSequence(head.sequence)) return;
  for (size_t n = 0; n < head.count; ++n) {
    UcxRecord record;
    std::memcpy(&record, bytes + sizeof(head) + n * sizeof(record), sizeof(record));
    inbox_.emplace_back(src, record);
  }
}

void UcxHub::Progress() {
  const std::lock_guard<std::mutex> lock(mutex_);
  Advance();
}

void UcxHub::Advance() {
  // Before it has peers, all that could come would be from strangers.
  if (peers_.empty()) return;
  for (int step = 0; step < kAdvanceSteps; ++step) {
    if (library_.ucp_worker_progress(worker_) == 0) break;
  }
  handling_.swap(inbox_);
  for (const auto& [src, record] : handling_) Take(src, record);
  handling_.clear();
  if (++advances_ % kAdvancesPerStrayHunt == 0) flights_->DropStrays();
  Attend();
}

void UcxHub::Attend() {
  LandFlights();  // of which there is something to tell
  for (size_t n = 0; n < shared_->busy.size();) {
    UcxPeer* const peer = shared_->busy[n];
    if (peer->Attend()) {
      ++n;
    } else {
      shared_->busy[n] = shared_->busy.back();
      shared_->busy.pop_back();
    }
  }
  SeeToBroken();
  LandFlights();
}

void UcxHub::Take(int src, const UcxRecord& record) {
  const int number = record.transport;
  const auto found = posts_.find(number);
  UcxTransport* const transport = found != posts_.end() ? found->second->transport : nullptr;
  switch (record.kind) {
    case UcxRecord::Kind::kHello:
      return peer(src).Connect();
    case UcxRecord::Kind::kAnnounce:
      return TakeAnnouncement(src, record);
    case UcxRecord::Kind::kGo:
      if (transport != nullptr && transport->Go(src, record)) return;
      return peer(src).Tell({.kind = UcxRecord::Kind::kGone,
                             .transport = record.transport,
                             .receive = record.receive});
    case UcxRecord::Kind::kDone:
    case UcxRecord::Kind::kRefused:
    case UcxRecord::Kind::kLanded:
      if (transport != nullptr) transport->EndSend(src, record);
      return;
    case UcxRecord::Kind::kGone:
      if (transport != nullptr) transport->Lose(src, record);
      return;
    case UcxRecord::Kind::kParted:
      return TakeParting(src, record);
    case UcxRecord::Kind::kHeard:
      if (transport != nullptr) transport->MarkHeard(src);
      return;
  }
  peer(src).Break(Garbage("a record of no kind"));
}

UcxPost* UcxHub::FindPost(int number, int src) {
  if (closed_[static_cast<size_t>(number)]) return nullptr;
  std::unique_ptr<UcxPost>& post = posts_[number];
  if (post != nullptr) return post.get();
  if (unopened_ == kUnopenedMax) {
    posts_.erase(number);
    peer(src).Break(Garbage("messages of too many transports"));
    return nullptr;
  }
  ++unopened_;
  post = std::make_unique<UcxPost>(size());
  return post.get();
}

void UcxHub::TakeAnnouncement(int src, const UcxRecord& record) {
  if (record.tag > kMaxTransportTag || record.bytes > kMaxTransportBytes) {
    return peer(src).Break(Garbage("a message that cannot be"));
  }
  UcxPost* const post = FindPost(record.transport, src);
  if (post == nullptr) return;
  const UcxAnnounced message = {record.bytes, record.send};
  const int tag = static_cast<int>(record.tag);
  if (const std::optional<int> slot = post->lines.TakeReceive(src, tag)) {
    return post->transport->Meet(*slot, message);
  }
  if (!post->lines.AddOffer(src, tag, message)) {
    peer(src).Break(Garbage("more messages than a transport holds"));
  }
}

void UcxHub::TakeParting(int src, const UcxRecord& record) {
  const bool asks = record.bytes == 0;
  if (asks) {
    peer(src).Tell({.kind = UcxRecord::Kind::kHeard, .transport = record.transport});
  }
  UcxPost* const post = FindPost(record.transport, src);
  if (post != nullptr) {
    post->parted[static_cast<size_t>(src)] = 1;
    if (post->transport != nullptr) post->transport->SeeParted(src);
  } else if (asks) {
    // A transport that has ended has parted.
    peer(src).Tell({.kind = UcxRecord::Kind::kParted, .transport = record.transport, .bytes = 1});
  }
}

void UcxHub::SeeToBroken() {
  while (!shared_->broken.empty()) {
    UcxPeer* const peer = shared_->broken.back();
    shared_->broken.pop_back();
    peer->Close();
    closing_.push_back(peer);
    for (const auto& [number, post] : posts_) {
      post->lines.Forget(peer->rank());
      if (post->transport != nullptr) post->transport->LosePeer(peer->rank());
    }
  }
  std::erase_if(closing_, [this](UcxPeer* peer) {
    if (!peer->is_closed()) return false;
    for (const auto& [number, post] : posts_) {
      if (post->transport != nullptr) post->transport->GiveUpPeer(peer->rank());
    }
    return true;
  });
}

void UcxHub::LandFlights() {
  while (UcxFlight* const flight = flights_->TakeLanded()) {
    if (flight->owner != nullptr) flight->owner->Land(*flight);
    flights_->GiveBack(flight);
  }
}

}  // namespace sluice
