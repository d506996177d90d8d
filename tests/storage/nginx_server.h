// A real HTTP server for tests: Debian's nginx on a port of its own, over a folder of its own, with
// ways to misbehave. It ends with the test, even if that crashes.
#ifndef SLUICE_TESTS_STORAGE_NGINX_SERVER_H_
#define SLUICE_TESTS_STORAGE_NGINX_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

class NginxServer {
 public:
  // One line of the access log.
  struct Request {
    std::string uri;
    int status = 0;
    int64_t body_bytes = 0;
    int64_t connection = 0;
  };

  // Starts one and waits until it answers; with https beside http if `tls`. Unavailable, with the
  // reason, where nginx, its Lua module or openssl are not installed.
  static absl::StatusOr<std::unique_ptr<NginxServer>> Make(bool tls = false);
  ~NginxServer();
  NginxServer(const NginxServer&) = delete;
  NginxServer& operator=(const NginxServer&) = delete;

  // Puts a file into the folder that is served; `name` may have folders in it.
  void Write(absl::string_view name, absl::string_view content) const;
  // Where that file lies.
  std::string FileOf(absl::string_view name) const { return dir_ + "/data/" + std::string(name); }

  // "http://127.0.0.1:1234/" and `path`.
  std::string Url(absl::string_view path) const;
  std::string TlsUrl(absl::string_view path) const;
  int tls_port() const { return tls_port_; }
  // The certificate (PEM) that the server shows, and one that has nothing to do with it.
  std::string ca_file() const { return dir_ + "/cert.pem"; }
  std::string other_ca_file() const { return dir_ + "/other-cert.pem"; }

  // Stops the server, and returns what it was asked.
  std::vector<Request> Stop();

 private:
  explicit NginxServer(std::string dir) : dir_(std::move(dir)) {}
  absl::Status Launch(bool tls);
  // Starts the process; returns the reading end of what it says on its standard error.
  int Spawn();

  const std::string dir_;
  int port_ = 0;
  int tls_port_ = 0;
  pid_t pid_ = -1;
};

// The configuration of the tests' HTTP server: its pages, and the ways in which it misbehaves.

// Of nginx with its Lua module. Serves the files in DIR/data under each of these paths:
//   `/plain/NAME`           As they are.
//   `/delay/MS/NAME`        After MS milliseconds.
//   `/burst/N/NAME`         The first N requests are answered 503.
//   `/code/CODE/NAME`       Answers this code.
//   `/whole/NAME`           Knows no ranges.
//   `/switch/N/NAME`        As they are. For the Nth connection that asks, as in DIR/data/newer.
//   `/dated_switch/N/NAME`  The same, with no other version than a date.
//   `/fault/MODE/NAME`      Answers a range wrongly. The modes are in the text.
//   `/trickle/NAME`         A byte now and then, for 30 s.
//   `/most`                 The largest number of requests that were ever at work at once.
// Each request leaves a line "URI STATUS BODY_BYTES CONNECTION" in DIR/access.log. With `tls`,
// https is at `tls_port`, with the certificate in DIR/cert.pem and its key in DIR/key.pem.
std::string NginxConfig(const std::string& dir, int port, bool tls, int tls_port);

}  // namespace sluice

#endif  // SLUICE_TESTS_STORAGE_NGINX_SERVER_H_
