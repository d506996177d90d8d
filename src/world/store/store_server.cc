// A server: its options, its listener, and its thread.
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "net/socket.h"
#include "sluice/store.h"
#include "storage/own_thread.h"
#include "tensor/error_text.h"
#include "world/store/store_address.h"
#include "world/store/store_check.h"
#include "world/store/store_loop.h"

namespace sluice {
namespace {

constexpr int kLastPort = 65535;

absl::Status CheckServerOptions(const StoreServerOptions& options) {
  const StoreLimits& limits = options.limits;
  if (options.port < 0 || options.port > kLastPort) {
    return absl::InvalidArgumentError(
        absl::StrCat("the port of a store is ", options.port, ", not 0 to ", kLastPort));
  }
  SLUICE_RETURN_IF_ERROR(CheckStoreToken(options.token));
  if (limits.keys < 1 || limits.bytes < 1 || limits.connections < 1 ||
      limits.hello <= absl::ZeroDuration() || limits.silence <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("each limit of a store is to be more than 0");
  }
  return absl::OkStatus();
}

// Whether this host reaches itself by IPv4.
bool HasIpv4() {
  const auto loopback = ResolveStoreHost("127.0.0.1", 0);
  return loopback.ok() && !loopback->empty() && CanBind(loopback->front());
}

absl::StatusOr<Fd> ListenForClients(const SocketAddress& address) {
  constexpr int kBacklog = 1024;
  const char* call = nullptr;
  Fd listener = ListenAt(address, kBacklog, /*again=*/true, &call);
  if (listener.is_open()) return listener;
  const bool is_held = errno == EADDRINUSE;
  const absl::Status why = absl::ErrnoToStatus(errno, call);
  return absl::Status(
      is_held ? absl::StatusCode::kAlreadyExists : absl::StatusCode::kUnavailable,
      absl::StrCat("a store cannot listen at ", address.Text(), ": ", why.message()));
}

}  // namespace

class StoreServer::Impl {
 public:
  Impl(std::unique_ptr<StoreLoop> loop, const StoreAddress& address)
      : loop_(std::move(loop)), address_(address) {}

  ~Impl() {
    if (getpid() != process_) {
      // A child has no such thread, and the parent needs what it works on.
      static_cast<void>(loop_.release());
      new std::thread(std::move(thread_));  // NOLINT: it stays
      return;
    }
    loop_->Stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start() {
    SLUICE_ASSIGN_OR_RETURN(thread_, StartOwnThread([this] { loop_->Run(); }, "sluice-serve"));
    return absl::OkStatus();
  }

  const StoreAddress& address() const { return address_; }

 private:
  const pid_t process_ = getpid();
  std::unique_ptr<StoreLoop> loop_;
  const StoreAddress address_;
  std::thread thread_;
};

StoreServer::StoreServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
StoreServer::~StoreServer() = default;

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Listen(
    const StoreServerOptions& options) {
  SLUICE_RETURN_IF_ERROR(CheckServerOptions(options));
  SLUICE_ASSIGN_OR_RETURN(const auto resolved, ResolveStoreHost(options.bind, options.port));
  if (resolved.empty()) return absl::UnavailableError("the store's host has no address");
  const SocketAddress& at = resolved.front();
  if (options.token.empty() && !at.IsLoopback()) {
    return absl::FailedPreconditionError(
        absl::StrCat("a store at ", at.Text(),
                     " can be reached from elsewhere, which takes a token: give all members the "
                     "same one (token or SLUICE_TOKEN), or bind it to 127.0.0.1"));
  }
  auto listener = ListenForClients(at);
  // A host without IPv6.
  if (!listener.ok() && options.bind.empty()) listener = ListenForClients(resolved.back());
  if (!listener.ok()) return listener.status();
  const int port = AddressOfSocket(listener->get()).port();
  SLUICE_ASSIGN_OR_RETURN(auto loop,
                          StoreLoop::Make(*std::move(listener), options.token, options.limits));
  std::string host(WithoutBrackets(options.bind));
  if (host.empty()) host = HasIpv4() ? "0.0.0.0" : "::";
  auto impl = std::make_unique<Impl>(std::move(loop), StoreAddress{host, port});
  SLUICE_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(impl)));
}

int StoreServer::port() const { return impl_->address().port; }
std::string StoreServer::address() const { return impl_->address().Text(); }

}  // namespace sluice
