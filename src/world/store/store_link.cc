// The calls' side of a link, and the life of its thread.
#include "world/store/store_link.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "net/socket.h"
#include "storage/own_thread.h"
#include "tensor/error_text.h"
#include "world/store/store_check.h"
#include "world/store/store_clock.h"

namespace sluice {
namespace {

// Requests of callers who have given up lie here until they are sent, or the connection ends.
constexpr size_t kMaxUnsentBytes = size_t{16} << 20;

}  // namespace

absl::Status StoreFate::Get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return CopyForThread(status_);
}

void StoreFate::End(const absl::Status& why) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (status_.ok()) status_ = CopyForThread(why);
}

StoreLink::StoreLink(const StoreAddress& address, const std::string& token, absl::Duration timeout)
    : address_(address),
      side_{token},
      timeout_(timeout),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

absl::StatusOr<std::shared_ptr<StoreLink>> StoreLink::Open(const StoreAddress& address,
                                                           const std::string& token,
                                                           absl::Duration timeout,
                                                           absl::Duration connect_timeout) {
  std::shared_ptr<StoreLink> link(new StoreLink(address, token, timeout));
  if (!link->wake_.is_open() || !link->stop_.is_open())
    return absl::ErrnoToStatus(errno, "eventfd");
  SLUICE_ASSIGN_OR_RETURN(
      link->connection_,
      ConnectInTime(address, link->side_, MonotonicNs() + StoreWaitNs(connect_timeout)));
  const SocketAddress own = AddressOfSocket(link->connection_.socket.get());
  if (own.length != 0 && !own.IsLoopback()) link->own_host_ = own.Host();
  link->fate_ = std::make_shared<StoreFate>();
  link->heard_ns_ = MonotonicNs();
  SLUICE_ASSIGN_OR_RETURN(link->thread_,
                          StartOwnThread([raw = link.get()] { raw->Run(); }, "sluice-store"));
  return link;
}

StoreLink::~StoreLink() { Close(); }

void StoreLink::Close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  static_cast<void>(eventfd_write(stop_.get(), 1));
  Wake();
  if (thread_.joinable()) thread_.join();
}

void StoreLink::Wake() const { static_cast<void>(eventfd_write(wake_.get(), 1)); }

bool StoreLink::Stopped() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return stopped_;
}

absl::StatusOr<StoreLink::Answer> StoreLink::Call(StoreRequest request, absl::Duration wait) {
  if (InChild()) return StoreForkedError();
  const auto call = std::make_shared<Pending>();
  const int64_t end_ns = MonotonicNs() + StoreWaitNs(wait) + StoreWaitNs(timeout_);
  std::unique_lock<std::mutex> lock(mutex_);
  if (!lost_.ok()) return CopyForThread(lost_);
  if (stopped_) return absl::UnavailableError("the store was closed here");
  if (requests_.size() > kMaxUnsentBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("the store at ", address_.Text(),
                                                     " has not taken ", requests_.size(),
                                                     " bytes of earlier calls"));
  }
  do {
    request.id = ++last_id_;
  } while (request.id == 0 || calls_.contains(request.id));
  calls_.emplace(request.id, call);
  requests_ += EncodeRequest(request);
  Wake();
  changed_.wait_until(lock, StoreTimePoint(end_ns), [&] { return call->done; });
  if (!call->done) {
    calls_.erase(request.id);
    return absl::UnavailableError(absl::StrCat("the store at ", address_.Text(),
                                               " has not answered a call within ",
                                               DurationText(timeout_)));
  }
  if (!call->status.ok()) return call->status;
  if (!call->answer.reply.status.ok()) return call->answer.reply.status;
  return std::move(call->answer);
}

void StoreLink::Post(const StoreRequest& request, const std::shared_ptr<StoreFate>& fate) {
  if (InChild()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_ || fate != fate_ || !fate->Get().ok()) return;
  requests_ += EncodeRequest(request);
  Wake();
}

void StoreLink::Post(const StoreRequest& request) {
  if (InChild()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_ || fate_ == nullptr || !fate_->Get().ok()) return;
  if (requests_.size() > kMaxUnsentBytes) return;
  requests_ += EncodeRequest(request);
  Wake();
}

void StoreLink::AddLease(int64_t lease_ms) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (leases_ms_.empty() || lease_ms < *leases_ms_.begin()) tightened_ns_ = MonotonicNs();
  leases_ms_.insert(lease_ms);
  Wake();
}

void StoreLink::RemoveLease(int64_t lease_ms) {
  if (InChild()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto at = leases_ms_.find(lease_ms);
  if (at != leases_ms_.end()) leases_ms_.erase(at);
}

void StoreLink::Break(const absl::Status& why) {
  connection_.socket.Close();
  inbox_ = StoreInbox(kMaxReplyBytes);
  unsent_.clear();
  sent_ = 0;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (fate_ != nullptr) fate_->End(why);
  // Nobody knows which calls were carried out.
  const absl::Status failed = lost_.ok() ? absl::UnavailableError(why.message()) : lost_;
  for (const auto& [id, call] : calls_) {
    call->status = CopyForThread(failed);
    call->done = true;
  }
  calls_.clear();
  requests_.clear();
  changed_.notify_all();
}

}  // namespace sluice
