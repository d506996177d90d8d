// A store over TCP: each call is a request to its server.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "sluice/store.h"
#include "tensor/error_text.h"
#include "world/store/store_address.h"
#include "world/store/store_check.h"
#include "world/store/store_clock.h"
#include "world/store/store_link.h"
#include "world/store/store_wire.h"
#include "world/store/token_store.h"

namespace sluice {
namespace {

StoreRequest MakeRequest(StoreCall call, absl::string_view key) {
  StoreRequest request;
  request.call = call;
  request.key = key;
  return request;
}

// Rounded up, so that nobody waits for less.
int64_t WaitMs(absl::Duration wait) {
  return absl::ToInt64Milliseconds(
      absl::Ceil(std::clamp(wait, absl::ZeroDuration(), kLongestStoreWait), absl::Milliseconds(1)));
}

class TcpLease : public StoreLease {
 public:
  TcpLease(std::shared_ptr<StoreLink> link, std::shared_ptr<StoreFate> fate, absl::string_view key,
           int64_t hold, int64_t lease_ms)
      : link_(std::move(link)),
        fate_(std::move(fate)),
        key_(key),
        hold_(hold),
        lease_ms_(lease_ms) {}

  ~TcpLease() override {
    if (link_->InChild()) {
      // The end of the last one would wait for a thread that is not here.
      new std::shared_ptr<StoreLink>(link_);
      return;
    }
    if (released_.exchange(true)) return;
    link_->Post(Request(), fate_);
    link_->RemoveLease(lease_ms_);
  }

  absl::Status status() const override {
    return link_->InChild() ? StoreForkedError() : fate_->Get();
  }

  absl::Status Release() override {
    if (link_->InChild()) return StoreForkedError();
    if (released_.exchange(true)) return absl::OkStatus();
    absl::Status status = fate_->Get();
    if (status.ok()) status = link_->Call(Request()).status();
    link_->RemoveLease(lease_ms_);
    return absl::IsAborted(status) ? absl::OkStatus() : status;
  }

 private:
  StoreRequest Request() const {
    StoreRequest request = MakeRequest(StoreCall::kRelease, key_);
    request.number = hold_;
    return request;
  }

  const std::shared_ptr<StoreLink> link_;
  const std::shared_ptr<StoreFate> fate_;
  const std::string key_;
  const int64_t hold_;
  const int64_t lease_ms_;
  std::atomic<bool> released_ = false;
};

class TcpStore : public TokenStore {
 public:
  TcpStore(std::shared_ptr<StoreLink> link, std::string token)
      : link_(std::move(link)), token_(std::move(token)) {}

  const std::string& token() const override { return token_; }
  const std::string& own_host() const override { return link_->own_host(); }

  ~TcpStore() override {
    if (link_->InChild()) {
      new std::shared_ptr<StoreLink>(link_);
    } else {
      link_->Close();
    }
  }

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    SLUICE_RETURN_IF_ERROR(CheckStoreKey(key));
    SLUICE_RETURN_IF_ERROR(CheckStoreValue(key, value));
    StoreRequest request = MakeRequest(StoreCall::kSet, key);
    request.value = value;
    return link_->Call(request).status();
  }

  void Post(absl::string_view key, absl::string_view value) override {
    StoreRequest request = MakeRequest(StoreCall::kSet, key);
    request.value = value;
    link_->Post(request);
  }

  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    SLUICE_RETURN_IF_ERROR(CheckStoreKey(key));
    StoreRequest request = MakeRequest(StoreCall::kGet, key);
    request.number = WaitMs(timeout);
    SLUICE_ASSIGN_OR_RETURN(auto answer, link_->Call(request, timeout));
    return std::move(answer.reply.value);
  }

  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override {
    SLUICE_RETURN_IF_ERROR(CheckStoreKey(key));
    StoreRequest request = MakeRequest(StoreCall::kAdd, key);
    request.number = delta;
    SLUICE_ASSIGN_OR_RETURN(const auto answer, link_->Call(request));
    return answer.reply.number;
  }

  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired) override {
    SLUICE_RETURN_IF_ERROR(CheckStoreKey(key));
    SLUICE_RETURN_IF_ERROR(CheckStoreValue(key, expected));
    SLUICE_RETURN_IF_ERROR(CheckStoreValue(key, desired));
    StoreRequest request = MakeRequest(StoreCall::kCompareSet, key);
    request.expected = expected;
    request.value = desired;
    SLUICE_ASSIGN_OR_RETURN(auto answer, link_->Call(request));
    return std::move(answer.reply.value);
  }

  absl::StatusOr<StoreEntries> List(absl::string_view prefix) override {
    SLUICE_RETURN_IF_ERROR(CheckStorePrefix(prefix));
    SLUICE_ASSIGN_OR_RETURN(auto answer, link_->Call(MakeRequest(StoreCall::kList, prefix)));
    return std::move(answer.reply.entries);
  }

  absl::StatusOr<std::unique_ptr<StoreLease>> Hold(absl::string_view key, absl::string_view value,
                                                   absl::Duration lease) override {
    if (link_->InChild()) return StoreForkedError();
    SLUICE_RETURN_IF_ERROR(CheckStoreHold(key, value, lease));
    StoreRequest request = MakeRequest(StoreCall::kHold, key);
    request.value = value;
    request.number = WaitMs(lease);
    // Before the server knows of the lease, and counts the silence.
    link_->AddLease(request.number);
    const auto answer = link_->Call(request);
    if (!answer.ok()) {
      link_->RemoveLease(request.number);
      return answer.status();
    }
    return std::make_unique<TcpLease>(link_, answer->fate, key, answer->reply.number,
                                      request.number);
  }

  absl::StatusOr<StoreView> Watch(absl::string_view prefix, uint64_t version,
                                  absl::Duration timeout) override {
    SLUICE_RETURN_IF_ERROR(CheckStorePrefix(prefix));
    StoreRequest request = MakeRequest(StoreCall::kWatch, prefix);
    request.version = version;
    request.number = version == 0 ? 0 : WaitMs(timeout);
    SLUICE_ASSIGN_OR_RETURN(auto answer, link_->Call(request, timeout));
    return StoreView{answer.reply.version, std::move(answer.reply.entries)};
  }

 private:
  const std::shared_ptr<StoreLink> link_;
  const std::string token_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> ConnectStore(absl::string_view address,
                                                    const StoreOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const auto parsed, ParseStoreAddress(address));
  const absl::Duration connect_timeout = options.connect_timeout.value_or(options.timeout);
  const absl::Duration shorter = std::min(options.timeout, connect_timeout);
  if (shorter <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the timeout of a store is ", DurationText(shorter), ", not more than 0"));
  }
  SLUICE_RETURN_IF_ERROR(CheckStoreToken(options.token));
  SLUICE_ASSIGN_OR_RETURN(auto link,
                          StoreLink::Open(parsed, options.token, options.timeout, connect_timeout));
  return std::make_unique<TcpStore>(std::move(link), options.token);
}

}  // namespace sluice
