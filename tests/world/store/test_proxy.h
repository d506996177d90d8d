// A network between clients and a server that a test can cut, or let drop everything.
#ifndef SLUICE_TESTS_WORLD_STORE_TEST_PROXY_H_
#define SLUICE_TESTS_WORLD_STORE_TEST_PROXY_H_

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/fd.h"

namespace sluice {

class TestProxy {
 public:
  // Between clients and a port of the loopback interface.
  explicit TestProxy(int to_port);
  ~TestProxy();
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;

  std::string address() const;

  // Ends all connections. New ones work.
  void Cut() { cut_ = true; }
  // As Cut, but one side is not told: it keeps half a connection.
  void CutClients() { cut_clients_ = true; }
  void CutServers() { cut_servers_ = true; }
  // Nothing passes any more, and nobody is told. New connections get no answer either.
  void Freeze(bool frozen) { frozen_ = frozen; }

 private:
  using Pair = std::pair<Fd, Fd>;  // the client's and the server's

  void Run();
  void Accept();
  void CutAsTold();
  // False: the connection has ended.
  static bool Pass(int from, int to);

  const int to_port_;
  const Fd listener_;
  std::atomic<bool> stopped_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> cut_clients_ = false;
  std::atomic<bool> cut_servers_ = false;
  std::atomic<bool> frozen_ = false;
  std::vector<Pair> pairs_;  // the thread's
  std::vector<Fd> halves_;   // likewise: connected to one side, and forgotten
  std::thread thread_;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_WORLD_STORE_TEST_PROXY_H_
