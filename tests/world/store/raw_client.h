// A client of a store that sends whatever a test wants, over a real socket.
#ifndef SLUICE_TESTS_WORLD_STORE_RAW_CLIENT_H_
#define SLUICE_TESTS_WORLD_STORE_RAW_CLIENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "net/fd.h"
#include "sluice/store.h"
#include "world/store/store_wire.h"

namespace sluice {

class RawClient {
 public:
  // Connects to a port of the loopback interface.
  explicit RawClient(int port);

  int fd() const { return fd_.get(); }
  bool connected() const { return connected_; }

  // Greets as a client does. False: the server did not welcome it.
  bool Greet(const std::string& token = "");
  // Waits until all is sent. False: the connection has ended.
  bool Send(absl::string_view bytes) const;
  // As much as goes without waiting; the number of bytes.
  size_t SendSome(absl::string_view bytes) const;
  // The next frame without its length; empty: the connection has ended.
  std::string NextFrame();
  // Reads until the server's error, or the end, which is OK.
  absl::Status AwaitError();
  // Reads on until the connection has ended.
  bool AwaitEnd();

 private:
  const Fd fd_;
  bool connected_ = false;
  StoreInbox inbox_{kMaxReplyBytes};
};

// A request as a client sends it.
std::string Request(StoreCall call, absl::string_view key, absl::string_view value = "",
                    int64_t number = 0, uint32_t id = 1);

// Options of a server that parts from nobody for being slow.
StoreServerOptions Patient();
// Options of a client.
StoreOptions Limit(absl::Duration timeout, const std::string& token = "");

// A server on any port of the loopback interface.
std::unique_ptr<StoreServer> Serve(const StoreServerOptions& options = {});
// One on this address; 0: any port.
std::unique_ptr<StoreServer> ServeAt(const std::string& bind, int port = 0,
                                     const std::string& token = "");
// A store that reaches it.
std::unique_ptr<Store> Reach(const StoreServer& server, const std::string& token = "",
                             absl::Duration timeout = absl::Seconds(120));
// Whether a new client can use the store.
bool Serves(const StoreServer& server, const std::string& token = "");

}  // namespace sluice

#endif  // SLUICE_TESTS_WORLD_STORE_RAW_CLIENT_H_
