// Stores: a server, connections to it, a table in memory, and stores of the caller's.
#include "sluice/store.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "c/call.h"
#include "c/store_handle.h"
#include "c/structs.h"
#include "tensor/error_text.h"

struct sluice_store_server {
  std::unique_ptr<sluice::StoreServer> server;
  std::string address;
};

struct sluice_reply {
  std::string value;
  sluice::StoreEntries entries;
};

namespace sluice::c {
namespace {

class CallerStore final : public Store {
 public:
  explicit CallerStore(const sluice_store_calls& calls) : calls_(calls) {}
  ~CallerStore() override {
    if (calls_.destroy != nullptr) calls_.destroy(calls_.self);
  }

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    SLUICE_RETURN_IF_ERROR(CheckKey(key));
    SLUICE_RETURN_IF_ERROR(CheckValue(value));
    return CallBack("the caller's store, set", [&] {
      return calls_.set(calls_.self, key.data(), key.size(), value.data(), value.size());
    });
  }

  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    SLUICE_RETURN_IF_ERROR(CheckKey(key));
    sluice_reply reply;
    const double seconds =
        timeout == absl::InfiniteDuration() ? -1 : absl::ToDoubleSeconds(timeout);
    SLUICE_RETURN_IF_ERROR(CallBack("the caller's store, get", [&] {
      return calls_.get(calls_.self, key.data(), key.size(), seconds, &reply);
    }));
    return std::move(reply.value);
  }

  absl::StatusOr<int64_t> Add(absl::string_view key, int64_t delta) override {
    SLUICE_RETURN_IF_ERROR(CheckKey(key));
    int64_t sum = 0;
    SLUICE_RETURN_IF_ERROR(CallBack("the caller's store, add", [&] {
      return calls_.add(calls_.self, key.data(), key.size(), delta, &sum);
    }));
    return sum;
  }

  absl::StatusOr<std::string> CompareSet(absl::string_view key, absl::string_view expected,
                                         absl::string_view desired) override {
    SLUICE_RETURN_IF_ERROR(CheckKey(key));
    SLUICE_RETURN_IF_ERROR(CheckValue(desired));
    sluice_reply reply;
    SLUICE_RETURN_IF_ERROR(CallBack("the caller's store, compare_set", [&] {
      return calls_.compare_set(calls_.self, key.data(), key.size(), expected.data(),
                                expected.size(), desired.data(), desired.size(), &reply);
    }));
    return std::move(reply.value);
  }

  absl::StatusOr<StoreEntries> List(absl::string_view prefix) override {
    sluice_reply reply;
    SLUICE_RETURN_IF_ERROR(CallBack("the caller's store, list", [&] {
      return calls_.list(calls_.self, prefix.data(), prefix.size(), &reply);
    }));
    for (const auto& entry : reply.entries) {
      if (absl::StartsWith(entry.first, prefix)) continue;
      return absl::InternalError(absl::StrCat("the caller's store, list: of keys with \"", prefix,
                                              "\" it replied \"", entry.first, "\""));
    }
    std::sort(reply.entries.begin(), reply.entries.end());
    return std::move(reply.entries);
  }

 private:
  static absl::Status CheckKey(absl::string_view key) {
    if (!key.empty() && key.size() <= kMaxStoreKeyBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("a key has ", key.size(), " bytes, not 1 .. ", kMaxStoreKeyBytes));
  }
  static absl::Status CheckValue(absl::string_view value) {
    if (value.size() <= kMaxStoreValueBytes) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("a value has ", value.size(), " bytes, more than ", kMaxStoreValueBytes));
  }

  const sluice_store_calls calls_;
};

absl::Status CheckCalls(const sluice_store_calls& calls) {
  if (calls.set == nullptr) return IsNull("sluice_store_calls.set");
  if (calls.get == nullptr) return IsNull("sluice_store_calls.get");
  if (calls.add == nullptr) return IsNull("sluice_store_calls.add");
  if (calls.compare_set == nullptr) return IsNull("sluice_store_calls.compare_set");
  if (calls.list == nullptr) return IsNull("sluice_store_calls.list");
  return absl::OkStatus();
}

absl::Status CheckStore(const sluice_store* store, const char* key) {
  if (store == nullptr) return IsNull("store");
  return key == nullptr ? IsNull("key") : absl::OkStatus();
}

absl::Status GiveStore(absl::StatusOr<std::unique_ptr<Store>> made, sluice_store** store) {
  if (!made.ok()) return made.status();
  *store = new sluice_store{std::shared_ptr<Store>(*std::move(made))};
  return absl::OkStatus();
}

absl::Status CheckBytes(const void* bytes, size_t count) {
  return bytes == nullptr && count > 0 ? IsNull("value") : absl::OkStatus();
}

absl::string_view Bytes(const void* bytes, size_t count) {
  return count == 0 ? absl::string_view()
                    : absl::string_view(static_cast<const char*>(bytes), count);
}

}  // namespace
}  // namespace sluice::c

using sluice::c::Guard;
using sluice::c::IsNull;

sluice_status sluice_store_listen(const sluice_listen_options* options,
                                  sluice_store_server** server) {
  return Guard("sluice_store_listen", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("server", server));
    sluice_listen_options read;
    SLUICE_RETURN_IF_ERROR(sluice::c::ReadOptions("sluice_listen_options", options, &read));
    sluice::StoreServerOptions own;
    if (read.bind != nullptr) own.bind = read.bind;
    own.token = sluice::c::TextOf(read.token);
    own.port = read.port;
    SLUICE_ASSIGN_OR_RETURN(auto made, sluice::StoreServer::Listen(own));
    auto handle = std::make_unique<sluice_store_server>();
    handle->address = made->address();
    handle->server = std::move(made);
    *server = handle.release();
    return absl::OkStatus();
  });
}

const char* sluice_store_server_address(const sluice_store_server* server) {
  return server == nullptr ? "" : server->address.c_str();
}

void sluice_store_server_destroy(sluice_store_server* server) { delete server; }

sluice_status sluice_store_connect(const char* address, const sluice_connect_store_options* options,
                                   sluice_store** store) {
  return Guard("sluice_store_connect", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("store", store));
    if (address == nullptr) return IsNull("address");
    sluice_connect_store_options read;
    SLUICE_RETURN_IF_ERROR(sluice::c::ReadOptions("sluice_connect_store_options", options, &read));
    sluice::StoreOptions own;
    own.token = sluice::c::TextOf(read.token);
    SLUICE_RETURN_IF_ERROR(sluice::c::ReadTime("timeout_s", read.timeout_s, &own.timeout));
    if (read.connect_timeout_s != 0) {
      own.connect_timeout = absl::InfiniteDuration();
      SLUICE_RETURN_IF_ERROR(
          sluice::c::ReadTime("connect_timeout_s", read.connect_timeout_s, &*own.connect_timeout));
    }
    return sluice::c::GiveStore(sluice::ConnectStore(address, own), store);
  });
}

sluice_status sluice_store_in_memory(sluice_store** store) {
  return Guard("sluice_store_in_memory", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("store", store));
    return sluice::c::GiveStore(sluice::MakeMemoryStore(), store);
  });
}

sluice_status sluice_reply_value(sluice_reply* reply, const void* value, size_t bytes) {
  return Guard("sluice_reply_value", [&]() -> absl::Status {
    if (reply == nullptr) return IsNull("reply");
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckBytes(value, bytes));
    reply->value = static_cast<std::string>(sluice::c::Bytes(value, bytes));
    return absl::OkStatus();
  });
}

sluice_status sluice_reply_entry(sluice_reply* reply, const void* key, size_t key_bytes,
                                 const void* value, size_t bytes) {
  return Guard("sluice_reply_entry", [&]() -> absl::Status {
    if (reply == nullptr) return IsNull("reply");
    if (key == nullptr) return IsNull("key");
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckBytes(value, bytes));
    reply->entries.emplace_back(sluice::c::Bytes(key, key_bytes), sluice::c::Bytes(value, bytes));
    return absl::OkStatus();
  });
}

sluice_status sluice_store_create(const sluice_store_calls* calls, sluice_store** store) {
  return Guard("sluice_store_create", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::ClearResult("store", store));
    sluice_store_calls read;
    SLUICE_RETURN_IF_ERROR(sluice::c::ReadStruct("sluice_store_calls", calls, &read));
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckCalls(read));
    return sluice::c::GiveStore(std::make_unique<sluice::c::CallerStore>(read), store);
  });
}

sluice_status sluice_store_set(sluice_store* store, const char* key, const void* value,
                               size_t bytes) {
  return Guard("sluice_store_set", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckStore(store, key));
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckBytes(value, bytes));
    return store->store->Set(key, sluice::c::Bytes(value, bytes));
  });
}

sluice_status sluice_store_get(sluice_store* store, const char* key, double timeout_s, void* value,
                               size_t* bytes) {
  return Guard("sluice_store_get", [&]() -> absl::Status {
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckStore(store, key));
    if (bytes == nullptr) return IsNull("bytes");
    SLUICE_ASSIGN_OR_RETURN(const auto timeout, sluice::c::ArgumentTime(timeout_s));
    SLUICE_ASSIGN_OR_RETURN(const std::string got, store->store->Get(key, timeout));
    return sluice::c::WriteBytes(got, 0, value, bytes);
  });
}

sluice_status sluice_store_add(sluice_store* store, const char* key, int64_t delta, int64_t* sum) {
  return Guard("sluice_store_add", [&]() -> absl::Status {
    sluice::c::Clear(sum);
    SLUICE_RETURN_IF_ERROR(sluice::c::CheckStore(store, key));
    if (sum == nullptr) return IsNull("sum");
    const absl::StatusOr<int64_t> added = store->store->Add(key, delta);
    if (added.ok()) *sum = *added;
    return added.status();
  });
}

void sluice_store_destroy(sluice_store* store) { delete store; }
